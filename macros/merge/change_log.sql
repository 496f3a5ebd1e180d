{%- macro change_log(entity, staged) -%}
    {%- set arriving = highwater.arriving_batches(entity, staged) -%}
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
{%- endmacro -%}
