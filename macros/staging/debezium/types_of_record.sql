{%- macro types_of_record(feed) -%}
    {%- set document = "coalesce(fields['document'], cast(record as string))" -%}
    {%- set fields = highwater.debezium_schema_fields() -%}
    {%- if highwater.feed_setting(feed, 'form') == 'flattened' -%}
from_json(get_json_object({{ document }}, '$.schema.fields'), '{{ fields }}')
    {%- else -%}
get(filter(
    from_json(get_json_object({{ document }}, '$.schema.fields'), 'array<struct<field: string, fields: {{ fields }}>>'),
    part -> part.field = 'after'
), 0).fields
    {%- endif -%}
{%- endmacro -%}
