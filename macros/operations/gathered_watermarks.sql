{%- macro gathered_watermarks(model_name) -%}
    {#- of the other lists counted_in_ledger has the mark of each table -#}
    {%- set shared = highwater.shared_by_lists() -%}
    {%- if 'watermarks' not in shared -%}
        {%- do shared.update({'watermarks': run_query(
            'select model, feed, table_name, declaration, landing_batch from ' ~ highwater.gathered_batches()
            ~ " where table_name is null or model = 'late_changes'"
        ).rows}) -%}
    {%- endif -%}
    {%- set watermarks = {} -%}
    {%- for row in shared.watermarks if row.model == model_name -%}
        {%- do watermarks.update({(row.feed, row.table_name): {'declaration': row.declaration, 'landing_batch': row.landing_batch | int}}) -%}
    {%- endfor -%}
    {{ return(watermarks) }}
{%- endmacro -%}
