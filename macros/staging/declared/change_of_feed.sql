{%- macro change_of_feed(feed) -%}
    {%- set named = highwater.declared_formats().get(highwater.feed_setting(feed, 'format')) -%}
    {%- if not named -%}
        {#- before dbt knows what is declared, anything that compiles does -#}
        {{ return(highwater.feed_setting(feed, 'change', {'order': [{'integer': '$.number'}]})) }}
    {%- endif -%}
    {%- set order = highwater.feed_setting(feed, 'order') -%}
    {%- set of_kafka = ['kafka'] + ([{'integer': '$index'}] if 'each' in named else []) -%}
    {{ return(dict(named, order=of_kafka if order == 'kafka' else named.orders[order])) }}
{%- endmacro -%}
