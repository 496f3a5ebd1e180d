{%- macro datastream_file_records(records, feed, entity) -%}
    {%- set order = highwater.feed_setting(feed, 'order') -%}
    {%- set baseline = highwater.baseline_condition(feed, "metadata.read_method like '%backfill%'") -%}
    {%- set position -%}
case
    when is_baseline then {{ highwater.lowest_sequence() }}
    else {{ highwater.datastream_sequence('position', order) | indent(4) }}
end
    {%- endset -%}
    {%- set problem %}
when document.source_metadata is null then 'malformed_record: it is no whole JSON object with source_metadata'
{{- highwater.unknown_source(feed) }}
    {%- endset -%}
    {%- set rows -%}
    (
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
    {%- endset -%}
    {{- highwater.parsed_records(rows, feed, entity, {
        'problem': problem,
        'image': 'try_cast(document.payload as map<string, string>)',
        'operation': 'metadata.change_type',
        'change_type': highwater.datastream_change_type(),
        'sequence': 'to_json(position.sort_keys)',
        'change_sequence_number': position,
        'commit_time': 'metadata.source_timestamp',
        'changed_at': 'try_cast(metadata.source_timestamp as timestamp)',
        'source_identity': 'source_identity',
    }, has_text=true) -}}
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
