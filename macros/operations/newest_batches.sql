{%- macro newest_batches(raw_table, watermark) -%}
    {%- set newest = {} -%}
    {%- if load_cached_relation(raw_table) is none -%}
        {#- nothing of the feed has ever landed -#}
        {{ return(newest) }}
    {%- endif -%}
    {%- for row in run_query(
        'select source_table, max(landing_batch) from ' ~ raw_table
        ~ " where entry = 'record' and landing_batch > " ~ watermark ~ ' group by source_table'
    ).rows -%}
        {%- do newest.update({row[0]: row[1] | int}) -%}
    {%- endfor -%}
    {{ return(newest) }}
{%- endmacro -%}
