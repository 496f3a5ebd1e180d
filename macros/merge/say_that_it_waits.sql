{%- macro say_that_it_waits(entity, records, why) -%}
    {%- set waits = entity ~ ' waits: ' ~ records -%}
    {%- do highwater.add_to_answer('waits', waits ~ '. ' ~ why) -%}
    {#- `highwater build` reads that at its end, and tells it there -#}
    {{ exceptions.warn(waits ~ ('; what to do is said at the end' if env_var('HIGHWATER_COLUMNS', '') else '. ' ~ why)) }}
{%- endmacro -%}
