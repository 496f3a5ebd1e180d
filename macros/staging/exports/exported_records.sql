{%- macro exported_records(records, feed, entity, is_export=false) -%}
    {%- set fields = highwater.entity_columns(entity) | map(attribute='field') | list -%}
    {{- highwater.parsed_records(records, feed, entity, {
        'problem': highwater._foreign_header(fields) if is_export else highwater.missing_fields('fields', fields),
        'image': highwater._without_prefixes(feed, entity) if is_export else 'fields',
        'operation': "'INSERT'",
        'change_type': "'insert'",
        'sequence': 'cast(null as string)',
        'change_sequence_number': highwater.lowest_sequence(),
        'commit_time': 'cast(null as string)',
        'changed_at': 'cast(null as timestamp)',
        'is_baseline': 'true',
        'is_snapshot': 'true',
    }) -}}
{%- endmacro -%}

{%- macro _foreign_header(fields) %}
when not arrays_overlap(map_keys(fields), array({{ highwater.quoted_texts(fields) }})) then concat(
    'malformed_record: its file names ', left(array_join(map_keys(fields), ', '), 200),
    ' in the first line, and no column of the table: deliver it with a header, its values separated as the feed declares'
)
{%- endmacro -%}

{%- macro _without_prefixes(feed, entity) -%}
    {#- of bytes in hex, as databases print them: \x00ff, 0x00FF -#}
    {%- set fields = highwater.entity_columns(entity) | selectattr('data_type', 'eq', 'binary') | map(attribute='field') | list -%}
    {%- if not fields or highwater.feed_setting(feed, 'format') != 'csv' -%}
        {{ return('fields') }}
    {%- endif -%}
transform_values(
    fields,
    (field, value) -> if(field in ({{ highwater.quoted_texts(fields) }}), regexp_replace(value, '^([\\\\]|0)x', ''), value)
)
{%- endmacro -%}
