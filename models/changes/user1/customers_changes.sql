{%- set arriving = arriving_batches('customers', [
    ref('stg_datastream_user1__customers_changes'),
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
