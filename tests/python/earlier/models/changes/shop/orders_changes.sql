{%- set arriving = highwater.arriving_batches('orders', [
    ref('stg_debezium_shop__orders_changes'),
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
