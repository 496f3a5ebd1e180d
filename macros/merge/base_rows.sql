{%- macro base_rows(log, entity, publications=none) -%}
with

changes as (

    {{ highwater.changes_to_take_in(log, entity, publications) }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', entity, this) }}

)

select * from latest
{%- endmacro -%}
