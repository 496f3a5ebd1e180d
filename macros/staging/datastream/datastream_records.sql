{%- macro datastream_records(records, feed, entity) -%}
    {%- set order = highwater.feed_setting(feed, 'order', 'change_sequence_number') -%}
    {%- set baseline = highwater.baseline_condition(feed, 'false') -%}
    {%- set position -%}
case
    when is_baseline then {{ highwater.lowest_sequence() }}
    else {{ highwater.datastream_sequence('metadata', order) | indent(4) }}
end
    {%- endset -%}
    {#- its metadata is most of a record, and a column that reads it as text is rare -#}
    {%- set is_column = 'datastream_metadata' in highwater.entity_columns(entity) | map(attribute='field') -%}
    {%- set values = 'document' if is_column else "map_filter(document, (field, value) -> field <> 'datastream_metadata')" -%}
    {%- set problem %}
when document is null then 'malformed_record: it is no whole JSON object'
when document['datastream_metadata'] is not null and metadata is null
    then 'malformed_record: datastream_metadata is no object'
    {%- endset -%}
    {%- set rows -%}
    (
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
    {%- endset -%}
    {{- highwater.parsed_records(rows, feed, entity, {
        'problem': problem,
        'image': 'cast(' ~ values ~ ' as map<string, string>)',
        'operation': 'metadata.change_type',
        'change_type': highwater.datastream_change_type(),
        'sequence': 'metadata.change_sequence_number' if order == 'change_sequence_number' else 'to_json(metadata.sort_keys)',
        'change_sequence_number': position,
        'commit_time': 'metadata.source_timestamp',
        'changed_at': highwater.timestamp_of_millis('metadata.source_timestamp'),
    }, has_text=true) -}}
{%- endmacro -%}
