{%- set arriving = highwater.arriving_batches('stock_levels', [
    ref('stg_dms_stock__stock_levels_changes'),
]) -%}

with

arrivals as (

    {{ highwater.new_arrivals(arriving) }}

),

standing as (

    {{ highwater.standing_changes('arrivals', arriving) }}

),

judged as (

    {{ highwater.judged_changes('arrivals', 'standing', arriving) }}

)

select * from judged
