{%- set arriving = arriving_batches('payments', [
    ref('stg_debezium_erp__payments_changes'),
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
