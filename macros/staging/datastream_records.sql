{%- macro datastream_records(records, feed, entity) -%}
    {%- set columns = entity_columns(entity) -%}
    {%- set order = feed_setting(feed, 'order', 'change_sequence_number') -%}
    {%- set baseline = baseline_condition(feed) -%}
    {%- set type -%}
        struct<
            {%- for column in columns %}
            `{{ column.field }}`: string,
            {%- endfor %}
            datastream_metadata: struct<
                source_timestamp: string,
                change_sequence_number: string,
                change_type: string,
                sort_keys: array<string>
            >
        >
    {%- endset -%}
    select
        source_file,
        source_line,
        landing_batch,
        landed_at,
        record,
        case
            when problem is not null then problem
            when text is null then 'not_utf8'
            when fields is null then 'malformed_record'
        end as problem,
        struct(
            {%- for column in columns %}
            {{ exact_number('fields.`' ~ column.field ~ '`', 'text', '$["' ~ column.field ~ '"]', column.data_type) | indent(12) }} as `{{ column.field }}`
            {{- ',' if not loop.last }}
            {%- endfor %}
        ) as fields,
        metadata.change_type as operation,
        {%- if baseline %}
        case
            when is_baseline then 'insert'
        {%- else %}
        case
        {%- endif %}
            when upper(metadata.change_type) = 'INSERT' then 'insert'
            when upper(metadata.change_type) in ('UPDATE-INSERT', 'UPDATE') then 'update'
            when upper(metadata.change_type) in ('UPDATE-DELETE', 'DELETE') then 'delete'
        end as change_type,
        {%- if order == 'change_sequence_number' %}
        metadata.change_sequence_number as sequence,
        {%- else %}
        to_json(metadata.sort_keys) as sequence,
        {%- endif %}
        {%- if baseline %}
        {%- set sequence_of_change -%}
        case
            when is_baseline then {{ lowest_sequence() }}
            else
                {{ datastream_sequence('metadata', order) | indent(8) }}
        end
        {%- endset %}
        {%- else %}
        {%- set sequence_of_change = datastream_sequence('metadata', order) %}
        {%- endif %}
        {{ sequence_in_epoch(feed, sequence_of_change) | indent(8) }} as change_sequence_number,
        metadata.source_timestamp as commit_time,
        {{ timestamp_of_millis('metadata.source_timestamp') | indent(8) }} as changed_at,
        {{ 'is_baseline' if baseline else 'false as is_baseline' }},
        cast(null as string) as source_identity
    from (
        select
            source_file,
            source_line,
            landing_batch,
            landed_at,
            record,
            problem,
            text,
            document as fields,
            document.datastream_metadata as metadata
            {%- if baseline %},
            coalesce({{ baseline }}, false) as is_baseline
            {%- endif %}
        from (
            {{- json_records(records, type) | indent(8) }}
        )
    )
{%- endmacro -%}
