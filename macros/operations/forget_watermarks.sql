{%- macro forget_watermarks(model_name) -%}
    {%- do run_query('delete from ' ~ highwater.gathered_batches() ~ " where model = '" ~ model_name ~ "'") -%}
    {%- do highwater.shared_by_lists().clear() -%}
{%- endmacro -%}
