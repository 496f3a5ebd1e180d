{%- macro changelog_records(records, feed, entity) -%}
    {%- set columns = entity_columns(entity) -%}
    {%- set sequence = sortable_sequence([
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
            when text is null then 'not_utf8'
            when metadata is null then 'malformed_record'
        end as problem,
        struct(
            {%- for column in columns %}
            {{ _changelog_value('image', column) }} as `{{ column.field }}`{{ ',' if not loop.last }}
            {%- endfor %}
        ) as fields,
        struct(
            {%- for column in columns if column.name in entity_key(entity) %}
            {{ _changelog_value('old_image', column) }} as `{{ column.field }}`{{ ',' if not loop.last }}
            {%- endfor %}
        ) as old_fields,
        metadata.change_type as operation,
        case
            -- rows that were there when the capture began
            when metadata.change_type = 'baseline' then 'insert'
            when metadata.change_type in ('insert', 'update', 'delete', 'truncate') then metadata.change_type
        end as change_type,
        concat_ws('/', metadata.capture, metadata.change_number) as sequence,
        {{ sequence_in_epoch(feed, sequence) | indent(8) }} as change_sequence_number,
        metadata.changed_at as commit_time,
        {{ timestamp_of_millis('metadata.changed_at') | indent(8) }} as changed_at,
        metadata.change_type <=> 'baseline' as is_baseline,
        cast(null as string) as source_identity
    from (
        select
            *,
            document as metadata,
            if(document.change_type = 'delete', document.before, document.after) as image,
            if(document.change_type = 'update', document.before, null) as old_image
        from (
            {{- json_records(records, 'struct<
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

{%- macro _changelog_value(image, column) -%}
    {%- if column.data_type == 'binary' -%}
{#- PostgreSQL writes bytes as \x and hex digits -#}
ltrim('\\x', {{ image }}['{{ column.field }}'])
    {%- else -%}
{{ image }}['{{ column.field }}']
    {%- endif -%}
{%- endmacro -%}
