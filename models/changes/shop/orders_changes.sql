{%- set arriving = arriving_batches('orders', [
    ref('stg_tungsten_shop__orders_changes'),
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
