{%- macro row_history(log, entity, tracked=none, ignored=[]) -%}
with

changes as (

    {{ highwater.changes_of_touched_keys(log, entity) }}

),

versions as (

    {{ highwater.row_versions('changes', log, entity, tracked=tracked, ignored=ignored) }}

)

select * from versions
{%- endmacro -%}
