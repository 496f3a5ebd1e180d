{%- macro arcion_changes(parsed, feed, table, entity, null_text=none, is_text=true) -%}
    {%- set key_fields = highwater.fields_of_files(highwater.key_columns(entity), feed, table, entity) -%}
    {%- set baseline = highwater.baseline_condition(feed, 'is_snapshot') -%}
    {%- set position -%}
case
    when is_baseline then {{ highwater.lowest_sequence() }}
    when metadata.log is not null
        then {{ highwater.sortable_sequence([
            {'text': "split_part(metadata.log, '.', -1)", 'base': 'decimal'},
            {'text': 'metadata.position', 'base': 'decimal'},
            {'text': "coalesce(metadata.logseqnum, '0')", 'base': 'decimal'},
        ]) | indent(8) }}
    else
        {{ highwater.sortable_sequence([
            {'text': 'metadata.timestamp', 'base': 'decimal'},
            {'text': 'metadata.dscid', 'base': 'decimal'},
            {'text': 'metadata.mutid', 'base': 'decimal'},
            {'text': "coalesce(metadata.partnum, '0')", 'base': 'decimal'},
        ]) | indent(8) }}
end
    {%- endset -%}
    {%- set problem %}
when is_readable is distinct from true then 'malformed_record: it is no whole document with after'
-- without it nobody knows which values the record carries
when not is_snapshot and presence is null and not is_delete then 'malformed_record: it has no EXISTS'
when not is_snapshot and unknown_presence is not null
    then concat('malformed_record: EXISTS of ', unknown_presence, ' is ', coalesce(to_json(array(presence[unknown_presence])), 'absent'))
when not is_snapshot and missing_value is not null
    then concat('malformed_record: EXISTS of ', missing_value, ' is ', presence[missing_value], ', and its value is not there')
{{- highwater.unknown_source(feed) }}
    {%- endset -%}
    {%- set change_type -%}
case upper(optype)
    when 'I' then 'insert'
    when 'U' then 'update'
    when 'D' then 'delete'
    {%- if highwater.feed_setting(feed, 'replace') == 'upsert' %}
    when 'R' then 'update'
    {%- endif %}
end
    {%- endset -%}
    {%- set rows -%}
    (
        select
            *,
            coalesce(metadata.slaveserverid, metadata.nodeid) as source_identity,
            coalesce({{ baseline }}, false) as is_baseline,
            coalesce(
                -- a delete needs its key only
                get(filter(map_keys(presence), field -> not is_delete and coalesce(presence[field] not in ('0', '1', '2', '3'), true)), 0),
                get(filter(array({{ highwater.quoted_texts(key_fields) or "''" }}), field -> coalesce(presence[field] not in ('1', '2', '3'), not is_delete)), 0)
            ) as unknown_presence,
            coalesce(
                get(filter(map_keys(presence), field -> not is_delete and presence[field] in ('1', '3') and not map_contains_key(after, field)), 0),
                get(filter(
                    array({{ highwater.quoted_texts(key_fields) or "''" }}), field -> presence[field] in ('2', '3')
                        and not coalesce(map_contains_key(before, field), false)
                ), 0)
            ) as missing_value,
            -- what a change sets; the key is in the old image unless the change sets it
            case
                when is_delete then map_filter(before, (field, value) -> field in ({{ highwater.quoted_texts(key_fields) or "''" }}))
                when presence is null then after
                else map_concat(
                    map_filter(before, (field, value) -> field in ({{ highwater.quoted_texts(key_fields) or "''" }}) and presence[field] = '2'),
                    map_filter(after, (field, value) -> presence[field] in ('1', '3'))
                )
            end as image,
            map_filter(
                before, (field, value) -> field in ({{ highwater.quoted_texts(key_fields) or "''" }}) and presence[field] in ('2', '3')
            ) as old_image
        from (
            select
                *,
                {{ highwater.json_document('repaired_cursor', 'struct<
                    extractorId: string,
                    timestamp: string,
                    log: string,
                    position: string,
                    logSeqNum: string,
                    slaveServerId: string,
                    nodeID: string,
                    dscId: string,
                    mutId: string,
                    partNum: string
                >') | indent(16) }} as metadata,
                upper(optype) <=> 'D' as is_delete
            from (
                select
                    *,
                    -- line ends of the producer's own documents stand inside its names: "partN um"
                    regexp_replace(cursor, '"([A-Za-z]+)\\s+([A-Za-z]+)"\\s*:', '"$1$2":') as repaired_cursor
                from (
                    {{- parsed | indent(12) }}
                )
            )
        )
    )
    {%- endset -%}
    {{- highwater.parsed_records(rows, feed, entity, {
        'problem': problem,
        'image': highwater._arcion_texts('image', null_text),
        'old_image': highwater._arcion_texts('old_image', null_text),
        'operation': 'optype',
        'change_type': change_type,
        'sequence': 'cursor',
        'change_sequence_number': position,
        'commit_time': 'metadata.timestamp',
        'changed_at': highwater.timestamp_of_millis('metadata.timestamp'),
        'source_identity': 'source_identity',
    }, has_text=is_text) -}}
{%- endmacro -%}

{%- macro _arcion_texts(image, null_text) -%}
    {%- if null_text -%}
transform_values({{ image }}, (field, value) -> nullif(value, {{ highwater.sql_text(null_text) }}))
    {%- else -%}
{{ image }}
    {%- endif -%}
{%- endmacro -%}
