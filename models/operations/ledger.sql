{{ config(materialized='incremental', incremental_strategy='append', file_format='delta', full_refresh=false) }}

{%- set marks = ledger_marks() -%}

with

new_batches as (

    {%- for table in logged_tables() %}
    {%- for feed, source_table in table.sources %}
    {%- if not loop.first or table != logged_tables()[0] %}

    union all
    {%- endif %}

    {{ ledger_rows(table.entity, source(feed, source_table), source_table, ref(table.entity ~ '_changes'), marks) }}
    {%- endfor %}
    {%- endfor %}

)

select * from new_batches
