{%- set arriving = arriving_batches('shipments', [
    ref('stg_dms_sales__shipments_changes'),
]) -%}

with

arrivals as (

    {{ new_arrivals(arriving) }}

),

standing as (

    {{ standing_changes('arrivals', arriving) }}

),

judged as (

    {{ judged_changes('arrivals', 'standing', arriving) }}

)

select * from judged
