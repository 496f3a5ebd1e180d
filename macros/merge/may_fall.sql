{%- macro may_fall(entity, feed) -%}
    {#- Without a key every record counts, and rows that never change stay as they came first. -#}
    {%- set is_judged_by_order = highwater.entity_key(entity) and not highwater.entity_setting(entity, 'insert_only', false) -%}
    {{ return(true if is_judged_by_order and highwater.has_clock(feed) else false) }}
{%- endmacro -%}
