{%- macro changelog_records(records, feed, entity) -%}
    {%- set position = highwater.sortable_sequence([
        {'text': 'metadata.capture', 'base': 'decimal'},
        {'text': 'metadata.change_number', 'base': 'decimal'},
    ]) -%}
    {%- set problem %}
when metadata is null then 'malformed_record: it is no whole JSON object'
    {%- endset -%}
    {%- set change_type -%}
case
    -- rows that were there when the capture began
    when metadata.change_type = 'baseline' then 'insert'
    when metadata.change_type in ('insert', 'update', 'delete', 'truncate') then metadata.change_type
end
    {%- endset -%}
    {%- set rows -%}
    (
        select
            *,
            document as metadata
        from (
            {{- highwater.json_records(records, 'struct<
                capture: string,
                change_number: string,
                change_type: string,
                changed_at: string,
                before: map<string, string>,
                after: map<string, string>
            >') | indent(8) }}
        )
    )
    {%- endset -%}
    {{- highwater.parsed_records(rows, feed, entity, {
        'problem': problem,
        'image': highwater._changelog_image("if(metadata.change_type = 'delete', metadata.before, metadata.after)", entity),
        'old_image': highwater._changelog_image("if(metadata.change_type = 'update', metadata.before, null)", entity),
        'operation': 'metadata.change_type',
        'change_type': change_type,
        'sequence': "concat_ws('/', metadata.capture, metadata.change_number)",
        'change_sequence_number': position,
        'commit_time': 'metadata.changed_at',
        'changed_at': highwater.timestamp_of_millis('metadata.changed_at'),
        'is_baseline': "metadata.change_type <=> 'baseline'",
        'is_snapshot': "metadata.change_type <=> 'baseline'",
    }, has_text=true) -}}
{%- endmacro -%}

{%- macro _changelog_image(image, entity) -%}
    {%- set binaries = highwater.entity_columns(entity) | selectattr('data_type', 'eq', 'binary') | map(attribute='field') | list -%}
    {%- if binaries -%}
-- PostgreSQL writes bytes as \x and hex digits
transform_values({{ image }}, (field, value) -> if(field in ({{ highwater.quoted_texts(binaries) }}), ltrim('\\x', value), value))
    {%- else -%}
{{ image }}
    {%- endif -%}
{%- endmacro -%}
