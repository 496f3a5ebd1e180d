{%- macro datastream_file_records(records, feed, entity) -%}
    {%- set columns = entity_columns(entity) -%}
    {%- set order = feed_setting(feed, 'order') -%}
    {%- set baseline = baseline_condition(feed, "metadata.read_method like '%backfill%'") -%}
    {%- set sequence -%}
case
    when is_baseline then {{ lowest_sequence() }}
    else
        {{ datastream_sequence('metadata', order) | indent(8) }}
end
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
            when document.source_metadata is null then 'malformed_record'
            {{- unknown_source(feed) | indent(12) }}
        end as problem,
        struct(
            {%- for column in columns %}
            {{ exact_number("document.payload['" ~ column.field ~ "']", 'text', '$.payload["' ~ column.field ~ '"]', column.data_type) | indent(12) }} as `{{ column.field }}`
            {{- ',' if not loop.last }}
            {%- endfor %}
        ) as fields,
        metadata.change_type as operation,
        case
            when is_baseline then 'insert'
            when upper(metadata.change_type) = 'INSERT' then 'insert'
            when upper(metadata.change_type) in ('UPDATE-INSERT', 'UPDATE') then 'update'
            when upper(metadata.change_type) in ('UPDATE-DELETE', 'DELETE') then 'delete'
        end as change_type,
        to_json(metadata.sort_keys) as sequence,
        {{ sequence_in_epoch(feed, sequence) | indent(8) }} as change_sequence_number,
        metadata.source_timestamp as commit_time,
        try_cast(metadata.source_timestamp as timestamp) as changed_at,
        is_baseline,
        source_identity
    from (
        select
            *,
            metadata.stream_name as source_identity,
            coalesce({{ baseline }}, false) as is_baseline
        from (
            select
                *,
                struct(
                    document.read_method,
                    document.stream_name,
                    document.source_timestamp,
                    document.sort_keys,
                    document.source_metadata.change_type
                ) as metadata
            from (
                {{- json_records(records, 'struct<
                    read_method: string,
                    stream_name: string,
                    source_timestamp: string,
                    sort_keys: array<string>,
                    source_metadata: struct<change_type: string>,
                    payload: map<string, string>
                >') | indent(12) }}
            )
        )
    )
{%- endmacro -%}
