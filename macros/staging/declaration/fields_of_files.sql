{%- macro fields_of_files(columns, feed, table, entity) -%}
    {%- set shard = highwater.shard_column(feed, table, entity) -%}
    {{ return(columns | map(attribute='field') | reject('eq', shard.field if shard else none) | list) }}
{%- endmacro -%}
