{%- macro change_log(entity, staged) -%}
    {%- set arriving = highwater.arriving_batches(entity, staged) -%}
with

arrivals as (

    {{ highwater.new_arrivals(arriving) }}

),

current_changes as (

    {{ highwater.standing_changes('arrivals', arriving) }}

),

classified as (

    {{ highwater.judged_changes('arrivals', 'current_changes', arriving) }}

)

select * from classified
{%- endmacro -%}
