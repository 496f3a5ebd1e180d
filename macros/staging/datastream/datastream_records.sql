{%- macro datastream_records(records, feed, entity) -%}
    {%- set order = highwater.feed_setting(feed, 'order', 'change_sequence_number') -%}
    {%- set baseline = highwater.baseline_condition(feed, 'false') -%}
    {%- set sequence -%}
case
    when is_baseline then {{ highwater.lowest_sequence() }}
    else {{ highwater.datastream_sequence('metadata', order) | indent(4) }}
end
    {%- endset -%}
    {#- its metadata is most of a record, and a column that reads it as text is rare -#}
    {%- set is_column = 'datastream_metadata' in highwater.entity_columns(entity) | map(attribute='field') -%}
    {%- set values = 'document' if is_column else "map_filter(document, (field, value) -> field <> 'datastream_metadata')" -%}
    select
        source_file,
        source_line,
        landing_batch,
        landed_at,
        record,
        case
            when problem is not null then problem
            {{- highwater.unreadable_text() | indent(12) }}
            when document is null then 'malformed_record: it is no whole JSON object'
            when document['datastream_metadata'] is not null and metadata is null
                then 'malformed_record: datastream_metadata is no object'
        end as problem,
        cast({{ values }} as map<string, string>) as image,
        metadata.change_type as operation,
        case
            when is_baseline then 'insert'
            when upper(metadata.change_type) = 'INSERT' then 'insert'
            when upper(metadata.change_type) in ('UPDATE-INSERT', 'UPDATE') then 'update'
            when upper(metadata.change_type) in ('UPDATE-DELETE', 'DELETE') then 'delete'
        end as change_type,
        {{ 'metadata.change_sequence_number' if order == 'change_sequence_number' else 'to_json(metadata.sort_keys)' }} as sequence,
        {{ highwater.sequence_in_epoch(feed, sequence) | indent(8) }} as change_sequence_number,
        metadata.source_timestamp as commit_time,
        {{ highwater.timestamp_of_millis('metadata.source_timestamp') | indent(8) }} as changed_at,
        is_baseline,
        is_baseline as is_snapshot,
        cast(null as string) as source_identity
    from (
        select
            *,
            coalesce({{ baseline }}, false) as is_baseline
        from (
            select
                *,
                try_cast(document['datastream_metadata'] as struct<
                    source_timestamp: string,
                    change_sequence_number: string,
                    change_type: string,
                    sort_keys: array<string>
                >) as metadata
            from (
                {{- highwater.json_records(records, 'map<string, variant>') | indent(12) }}
            )
        )
    )
{%- endmacro -%}
