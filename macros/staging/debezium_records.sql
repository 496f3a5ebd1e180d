{%- macro debezium_records(records, feed, entity) -%}
    {%- set columns = entity_columns(entity) -%}
    {%- set is_flattened = feed_setting(feed, 'form', 'envelope') == 'flattened' -%}
    {%- set connector = feed_setting(feed, 'connector') -%}
    {%- set baseline = baseline_condition(feed, "metadata.op = 'r'") -%}
    {%- set unavailable = feed_setting(feed, 'unavailable_value', '__debezium_unavailable_value') -%}
    {%- set source_fields = [
        'name', 'server_id', 'ts_ms', 'snapshot', 'lsn', 'file', 'pos', 'row', 'scn', 'commit_scn', 'ssn', 'commit_lsn',
        'change_lsn', 'event_serial_no',
    ] -%}
    {%- set envelope -%}
struct<
                before: map<string, string>,
                after: map<string, string>,
                source: struct<{% for name in source_fields %}{{ name }}: string{{ ', ' if not loop.last }}{% endfor %}>,
                op: string
            >
    {%- endset -%}
    {%- set sequence -%}
case
    when is_baseline then {{ lowest_sequence() }}
    else
        {{ debezium_sequence('metadata', connector) | indent(8) }}
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
            when is_readable is distinct from true then 'malformed_record'
            {{- unknown_source(feed) | indent(12) }}
        end as problem,
        struct(
            {%- for column in columns %}
            {{ debezium_value("image['" ~ column.field ~ "']", column, feed) | indent(12) }} as `{{ column.field }}`
            {{- ',' if not loop.last }}
            {%- endfor %}
        ) as fields,
        -- a value that the connector did not have is absent, not changed
        map_keys(image) as present,
        struct(
            {%- for column in columns if column.name in entity_key(entity) %}
            {{ debezium_value("old_image['" ~ column.field ~ "']", column, feed) | indent(12) }} as `{{ column.field }}`
            {{- ',' if not loop.last }}
            {%- endfor %}
        ) as old_fields,
        metadata.op as operation,
        case metadata.op
            when 'c' then 'insert'
            when 'r' then 'insert'
            when 'u' then 'update'
            when 'd' then 'delete'
            when 't' then 'truncate'
        end as change_type,
        {{ debezium_sequence('metadata', connector, as_delivered=true) }} as sequence,
        {{ sequence_in_epoch(feed, sequence) | indent(8) }} as change_sequence_number,
        metadata.ts_ms as commit_time,
        {{ timestamp_of_millis('metadata.ts_ms') | indent(8) }} as changed_at,
        is_baseline,
        source_identity
    from (
        select
            *,
            {{ 'metadata.server_id' if connector in ('mysql', 'mariadb') else 'metadata.name' }} as source_identity,
            coalesce({{ baseline }}, false) as is_baseline
        from (
            {%- if is_flattened %}
            {{- _debezium_flattened(records, source_fields, unavailable) | indent(8) }}
            {%- else %}
            {{- _debezium_envelopes(records, source_fields, envelope, unavailable) | indent(8) }}
            {%- endif %}
        )
    )
{%- endmacro -%}

{%- macro _debezium_envelopes(records, source_fields, envelope, unavailable) %}
    select
        *,
        envelope.op is not null as is_readable,
        struct(
            envelope.op,
            {%- for name in source_fields %}
            envelope.source.{{ name }}{{ ',' if not loop.last }}
            {%- endfor %}
        ) as metadata,
        map_filter(
            case when envelope.op = 'd' then envelope.before else envelope.after end,
            (field, value) -> {{ _is_available('value', unavailable) }}
        ) as image,
        case when envelope.op = 'u' then envelope.before end as old_image
    from (
        select
            *,
            -- with a schema the envelope is the payload
            coalesce(
                document.payload, struct(document.before, document.after, document.source, document.op)
            ) as envelope
        from (
            {{- json_records(records, 'struct<payload: ' ~ envelope ~ ', ' ~ (envelope[7:] | trim)) | indent(8) }}
        )
    )
{%- endmacro -%}

{%- macro _debezium_flattened(records, source_fields, unavailable) %}
    select
        *,
        document is not null as is_readable,
        struct(
            coalesce(document['__op'], case when document['__deleted'] = 'true' then 'd' when document['__deleted'] = 'false' then 'u' end) as op,
            {%- for name in source_fields %}
            coalesce(document['__{{ name }}'], document['__source_{{ name }}']) as {{ name }}{{ ',' if not loop.last }}
            {%- endfor %}
        ) as metadata,
        map_filter(
            document,
            (field, value) -> not startswith(field, '__') and {{ _is_available('value', unavailable) }}
        ) as image,
        cast(null as map<string, string>) as old_image
    from (
        {{- json_records(records, 'map<string, string>') | indent(4) }}
    )
{%- endmacro -%}

{%- macro _is_available(value, unavailable) -%}
{{ value }} is null or {{ value }} not in ('{{ unavailable }}', base64('{{ unavailable }}'), '["{{ unavailable }}"]')
{%- endmacro -%}
