{%- macro debezium_schema_fields() -%}
array<struct<field: string, type: string, name: string, parameters: struct<scale: string, `__debezium.source.column.type`: string>>>
{%- endmacro -%}
