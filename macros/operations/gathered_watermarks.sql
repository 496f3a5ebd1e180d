{%- macro gathered_watermarks(model_name) -%}
    {%- set watermarks = {} -%}
    {%- for row in run_query(
        'select feed, table_name, declaration, landing_batch from ' ~ highwater.gathered_batches() ~ " where model = '"
        ~ model_name ~ "'"
    ).rows -%}
        {%- do watermarks.update({(row[0], row[1]): {'declaration': row[2], 'landing_batch': row[3] | int}}) -%}
    {%- endfor -%}
    {{ return(watermarks) }}
{%- endmacro -%}
