{%- macro shard_of_record(entity) -%}
    {%- set source = highwater.source_of_model(entity) -%}
    {%- if highwater.shard_column(source.feed, source.table, entity) and highwater.feed_setting(source.feed, 'layout') == 'records' %}
        fields['shard'] as shard,
    {%- endif -%}
{%- endmacro -%}
