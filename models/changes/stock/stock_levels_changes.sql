{%- set arriving = arriving_batches('stock_levels', [
    ref('stg_dms_stock__stock_levels_changes'),
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
