{%- macro arcion_changes(parsed, feed, entity, null_text=none, is_text=true) -%}
    {%- set columns = entity_columns(entity) -%}
    {%- set key = entity_key(entity) -%}
    {%- set baseline = baseline_condition(feed, 'is_snapshot') -%}
    {%- set sequence -%}
case
    when is_baseline then {{ lowest_sequence() }}
    when metadata.log is not null
        then {{ sortable_sequence([
            {'text': "split_part(metadata.log, '.', -1)", 'base': 'decimal'},
            {'text': 'metadata.position', 'base': 'decimal'},
            {'text': "coalesce(metadata.logseqnum, '0')", 'base': 'decimal'},
        ]) | indent(8) }}
    else
        {{ sortable_sequence([
            {'text': 'metadata.timestamp', 'base': 'decimal'},
            {'text': 'metadata.dscid', 'base': 'decimal'},
            {'text': 'metadata.mutid', 'base': 'decimal'},
            {'text': "coalesce(metadata.partnum, '0')", 'base': 'decimal'},
        ]) | indent(8) }}
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
            {%- if is_text %}
            when text is null then 'not_utf8'
            {%- endif %}
            when is_readable is distinct from true then 'malformed_record'
            -- without it nobody knows which values the record carries
            when not is_snapshot and (
                presence is null
                or exists(map_values(presence), place -> coalesce(place not in ('0', '1', '2', '3'), true))
                {%- for column in columns %}
                or (presence['{{ column.field }}'] in ('1', '3') and not map_contains_key(after, '{{ column.field }}'))
                {%- endfor %}
                {%- for column in columns if column.name in key %}
                or not coalesce(presence['{{ column.field }}'] in ('1', '2', '3'), false)
                or (presence['{{ column.field }}'] in ('2', '3') and not coalesce(map_contains_key(before, '{{ column.field }}'), false))
                {%- endfor %}
            ) then 'malformed_record'
            {{- unknown_source(feed) | indent(12) }}
        end as problem,
        struct(
            {%- for column in columns %}
            {%- set is_new = "presence is null or presence['" ~ column.field ~ "'] in ('1', '3')" %}
            {%- set new = _arcion_value("after['" ~ column.field ~ "']", null_text) %}
            {%- set old = _arcion_value("before['" ~ column.field ~ "']", null_text) %}
            {%- if column.name in key %}
            -- the key of an update is in the old image unless the update sets it
            case when upper(optype) = 'D' or not ({{ is_new }}) then {{ old }} else {{ new }} end as `{{ column.field }}`
            {%- else %}
            case when {{ is_new }} then {{ new }} end as `{{ column.field }}`
            {%- endif %}
            {{- ',' if not loop.last }}
            {%- endfor %}
        ) as fields,
        case
            when presence is not null then array_compact(array(
                {%- for column in columns %}
                {%- if column.name in key %}
                '{{ column.field }}'
                {%- else %}
                case when presence['{{ column.field }}'] in ('1', '3') then '{{ column.field }}' end
                {%- endif %}
                {{- ',' if not loop.last }}
                {%- endfor %}
            ))
        end as present,
        struct(
            {%- for column in columns if column.name in key %}
            case
                when presence['{{ column.field }}'] in ('2', '3')
                    then {{ _arcion_value("before['" ~ column.field ~ "']", null_text) }}
            end as `{{ column.field }}`
            {{- ',' if not loop.last }}
            {%- endfor %}
        ) as old_fields,
        optype as operation,
        case upper(optype)
            when 'I' then 'insert'
            when 'U' then 'update'
            when 'D' then 'delete'
            {%- if feed_setting(feed, 'replace') == 'upsert' %}
            when 'R' then 'update'
            {%- endif %}
        end as change_type,
        cursor as sequence,
        {{ sequence_in_epoch(feed, sequence) | indent(8) }} as change_sequence_number,
        metadata.timestamp as commit_time,
        {{ timestamp_of_millis('metadata.timestamp') | indent(8) }} as changed_at,
        is_baseline,
        source_identity
    from (
        select
            *,
            coalesce(metadata.slaveserverid, metadata.nodeid) as source_identity,
            coalesce({{ baseline }}, false) as is_baseline
        from (
            select
                *,
                {{ json_document('mended_cursor', 'struct<
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
                >') | indent(16) }} as metadata
            from (
                select
                    *,
                    -- line ends of the producer's own documents stand inside its names: "partN um"
                    regexp_replace(cursor, '"([A-Za-z]+)\\s+([A-Za-z]+)"\\s*:', '"$1$2":') as mended_cursor
                from (
                    {{- parsed | indent(12) }}
                )
            )
        )
    )
{%- endmacro -%}

{%- macro _arcion_value(text, null_text) -%}
{{ "nullif(" ~ text ~ ", '" ~ null_text ~ "')" if null_text else text }}
{%- endmacro -%}
