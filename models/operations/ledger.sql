{{ config(materialized='incremental', incremental_strategy='append', file_format='delta', full_refresh=false) }}

with

new_batches as (

    {%- for batch in unrecorded_batches() %}
    {%- if not loop.first %}

    union all
    {%- endif %}

    {{ ledger_rows(batch) }}
    {%- else %}

    select * from {{ this }}
    where false
    {%- endfor %}

)

select * from new_batches
