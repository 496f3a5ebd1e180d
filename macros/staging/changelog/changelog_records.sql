{%- macro changelog_records(records, feed, entity) -%}
    {%- set sequence = highwater.sortable_sequence([
        {'text': 'metadata.capture', 'base': 'decimal'},
        {'text': 'metadata.change_number', 'base': 'decimal'},
    ]) -%}
    select
        source_file,
        source_line,
        landing_batch,
        landed_at,
        record,
        case
            when problem is not null then problem
            {{- highwater.unreadable_text() | indent(12) }}
            when metadata is null then 'malformed_record: it is no whole JSON object'
        end as problem,
        {{ highwater._changelog_image('if(metadata.change_type = \'delete\', metadata.before, metadata.after)', entity) | indent(8) }} as image,
        {{ highwater._changelog_image('if(metadata.change_type = \'update\', metadata.before, null)', entity) | indent(8) }} as old_image,
        metadata.change_type as operation,
        case
            -- rows that were there when the capture began
            when metadata.change_type = 'baseline' then 'insert'
            when metadata.change_type in ('insert', 'update', 'delete', 'truncate') then metadata.change_type
        end as change_type,
        concat_ws('/', metadata.capture, metadata.change_number) as sequence,
        {{ highwater.sequence_in_epoch(feed, sequence) | indent(8) }} as change_sequence_number,
        metadata.changed_at as commit_time,
        {{ highwater.timestamp_of_millis('metadata.changed_at') | indent(8) }} as changed_at,
        metadata.change_type <=> 'baseline' as is_baseline,
        metadata.change_type <=> 'baseline' as is_snapshot,
        cast(null as string) as source_identity
    from (
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
