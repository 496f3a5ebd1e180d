{%- macro datastream_file_records(records, feed, entity) -%}
    {%- set order = highwater.feed_setting(feed, 'order') -%}
    {%- set baseline = highwater.baseline_condition(feed, "metadata.read_method like '%backfill%'") -%}
    {%- set sequence -%}
case
    when is_baseline then {{ highwater.lowest_sequence() }}
    else {{ highwater.datastream_sequence('position', order) | indent(4) }}
end
    {%- endset -%}
    select
        source_file,
        source_line,
        landing_batch,
        landed_at,
        record,
        {{- highwater.shard_of_record(entity) }}
        case
            when problem is not null then problem
            {{- highwater.unreadable_text() | indent(12) }}
            when document.source_metadata is null then 'malformed_record: it is no whole JSON object with source_metadata'
            {{- highwater.unknown_source(feed) | indent(12) }}
        end as problem,
        try_cast(document.payload as map<string, string>) as image,
        metadata.change_type as operation,
        case
            when is_baseline then 'insert'
            when upper(metadata.change_type) = 'INSERT' then 'insert'
            when upper(metadata.change_type) in ('UPDATE-INSERT', 'UPDATE') then 'update'
            when upper(metadata.change_type) in ('UPDATE-DELETE', 'DELETE') then 'delete'
        end as change_type,
        to_json(position.sort_keys) as sequence,
        {{ highwater.sequence_in_epoch(feed, sequence) | indent(8) }} as change_sequence_number,
        metadata.source_timestamp as commit_time,
        try_cast(metadata.source_timestamp as timestamp) as changed_at,
        is_baseline,
        is_baseline as is_snapshot,
        source_identity
    from (
        select
            *,
            metadata.stream_name as source_identity,
            struct({{ highwater._completed_sort_keys(order) | indent(12) }} as sort_keys) as position,
            coalesce({{ baseline }}, false) as is_baseline
        from (
            select
                *,
                struct(
                    document.read_method,
                    document.stream_name,
                    document.source_timestamp,
                    document.read_timestamp,
                    document.sort_keys,
                    document.source_metadata.change_type,
                    document.source_metadata.scn,
                    document.source_metadata.rs_id,
                    document.source_metadata.ssn,
                    document.source_metadata.lsn,
                    document.source_metadata.log_file,
                    document.source_metadata.log_position
                ) as metadata
            from (
                {{- highwater.json_records(records, 'struct<
                    read_method: string,
                    stream_name: string,
                    source_timestamp: string,
                    read_timestamp: string,
                    sort_keys: array<string>,
                    source_metadata: struct<
                        change_type: string, scn: string, rs_id: string, ssn: string, lsn: string,
                        log_file: string, log_position: string
                    >,
                    payload: variant
                >') | indent(12) }}
            )
        )
    )
{%- endmacro -%}

{%- macro _completed_sort_keys(order) -%}
    {#- what sort_keys leave empty stands in source_metadata -#}
    {%- if order == 'oracle_sort_keys' -%}
case
    when trim(get(metadata.sort_keys, 2)) = '' then array(
        get(metadata.sort_keys, 0), get(metadata.sort_keys, 1), coalesce(metadata.rs_id, ''), coalesce(metadata.ssn, get(metadata.sort_keys, 3))
    )
    else metadata.sort_keys
end
    {%- elif order in ('sqlserver_sort_keys', 'postgresql_sort_keys') -%}
case
    when coalesce(get(metadata.sort_keys, 1), '') = '' then array(get(metadata.sort_keys, 0), metadata.lsn)
    else metadata.sort_keys
end
    {%- elif order == 'mysql_sort_keys' -%}
case
    when coalesce(get(metadata.sort_keys, 1), '') = ''
        then array(get(metadata.sort_keys, 0), metadata.log_file, metadata.log_position)
    else metadata.sort_keys
end
    {%- else -%}
metadata.sort_keys
    {%- endif -%}
{%- endmacro -%}
