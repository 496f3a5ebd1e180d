{%- macro newest_batches(raw_table, watermark) -%}
    {%- set newest = {} -%}
    {%- if load_cached_relation(raw_table) is none -%}
        {#- nothing of the feed has ever landed -#}
        {{ return(newest) }}
    {%- endif -%}
    {%- set asked = highwater.shared_by_lists().setdefault('newest', {}) -%}
    {%- set question = raw_table ~ ' ' ~ watermark -%}
    {%- if question not in asked -%}
        {%- do asked.update({question: run_query(
            'select source_table, max(landing_batch) as landing_batch from ' ~ raw_table
            ~ " where entry = 'record' and landing_batch > " ~ watermark ~ ' group by source_table'
        ).rows}) -%}
    {%- endif -%}
    {%- for row in asked[question] -%}
        {%- do newest.update({row.source_table: row.landing_batch | int}) -%}
    {%- endfor -%}
    {{ return(newest) }}
{%- endmacro -%}
