{%- macro debezium_records(records, feed, entity) -%}
    {%- set is_flattened = highwater.feed_setting(feed, 'form', 'envelope') == 'flattened' -%}
    {%- set connector = highwater.feed_setting(feed, 'connector') -%}
    {%- set baseline = highwater.baseline_condition(feed, "metadata.op = 'r' and position is null") -%}
    {%- set is_available = highwater._is_available(highwater.unavailable_value(feed)) -%}
    {%- set source_fields = [
        'name', 'server_id', 'ts_ms', 'snapshot', 'sequence', 'lsn', 'file', 'pos', 'row', 'scn', 'commit_scn', 'ssn',
        'commit_lsn', 'change_lsn', 'event_serial_no',
    ] + (['gtid'] if connector in ('mysql', 'mariadb') else []) -%}
    {%- for field in highwater.debezium_position_fields(feed) if field not in source_fields -%}
        {%- do source_fields.append(field) -%}
    {%- endfor -%}
    {%- set position -%}
case when is_baseline then {{ highwater.lowest_sequence() }} else position end
    {%- endset -%}
    {%- set problem %}
when document is null then 'malformed_record: it is no whole document'
when is_readable is distinct from true
    then concat(
        'unknown_form: it has no {{ 'fields of a row' if is_flattened else 'op' }}, only ',
        coalesce(array_join(json_object_keys(text), ', '), 'an array'),
        '{{ '' if is_flattened else '; a row without before and after is flattened, then declare `form: flattened`' }}'
    )
    {%- if is_flattened %}
{{- highwater._debezium_untold(feed) }}
    {%- endif %}
{{- highwater.unknown_source(feed) }}
    {%- endset -%}
    {%- set image -%}
map_filter(
    texts[0],
    -- a value that the connector did not have is absent, not changed
    (field, value) -> {{ is_available | indent(4) }}
)
    {%- endset -%}
    {%- set withheld = 'map_keys(map_filter(texts[0], (field, value) -> not (' ~ is_available ~ ')))' -%}
    {%- set change_type -%}
case metadata.op
    when 'c' then 'insert'
    when 'r' then 'insert'
    when 'u' then 'update'
    when 'd' then 'delete'
    when 't' then 'truncate'
end
    {%- endset -%}
    {%- set rows -%}
    (
        select
            *,
            coalesce({{ baseline }}, false) as is_baseline
        from (
            select
                *,
                {{ 'metadata.server_id' if connector in ('mysql', 'mariadb') else 'metadata.name' }} as source_identity,
                {{ highwater.debezium_sequence('metadata', feed) | indent(16) }} as position,
                transform(array(image, old_image), fields -> {{ highwater.debezium_texts('fields', feed, entity) | indent(16) }}) as texts
            from (
                {{- highwater._with_types(
                    highwater._debezium_flattened(records, source_fields, feed) if is_flattened
                    else highwater._debezium_envelopes(records, source_fields, entity),
                    highwater.debezium_decoded_columns(feed, entity)
                ) | indent(12) }}
            )
        )
    )
    {%- endset -%}
    {{- highwater.parsed_records(rows, feed, entity, {
        'problem': problem,
        'image': image,
        'withheld': withheld if highwater.entity_columns(entity) | selectattr('came_later') | list else none,
        'old_image': 'texts[1]',
        'operation': 'metadata.op',
        'change_type': change_type,
        'sequence': highwater.debezium_sequence('metadata', feed, as_delivered=true),
        'change_sequence_number': position,
        'commit_time': 'metadata.ts_ms',
        'changed_at': highwater.timestamp_of_millis('metadata.ts_ms'),
        'is_snapshot': "is_baseline or metadata.op <=> 'r'",
        'gtid': 'metadata.gtid' if 'gtid' in source_fields else none,
        'source_identity': 'source_identity',
    }, has_text=true) -}}
{%- endmacro -%}

{%- macro _with_types(images, decoded) -%}
    {%- if not decoded -%}
        {{- images -}}
    {%- else %}
    select
        *,
        -- what the record's schema says of them, the first of each name
        map_from_entries(transform(
            filter(schema_types, (type, ordinal) -> array_position(schema_names, type.field) = ordinal + 1),
            type -> struct(type.field, type)
        )) as types
    from (
        select
            *,
            transform(schema_types, type -> type.field) as schema_names
        from (
            select
                * except (schema_types),
                filter(schema_types, type -> map_contains_key(declared, type.field)) as schema_types
            from (
                select
                    *,
                    -- columns that are not read as they stand, and the scale or unit that is declared
                    map({% for field, kind, detail in decoded -%}
                        {{ highwater.sql_text(field) }}, '{{ kind }}{{ ' ' ~ detail if detail is not none }}'{{ ', ' if not loop.last }}
                    {%- endfor %}) as declared
                from (
                    {{- images | indent(16) }}
                )
            )
        )
    )
    {%- endif -%}
{%- endmacro -%}

{%- macro _debezium_envelopes(records, source_fields, entity) %}
    {%- set envelope -%}
before: variant, after: variant, source: struct<{% for name in source_fields %}{{ name }}: string{{ ', ' if not loop.last }}{% endfor %}>, op: string
    {%- endset %}
    select
        *,
        envelope.op is not null as is_readable,
        struct(
            envelope.op,
            {%- for name in source_fields %}
            envelope.source.{{ name }}{{ ',' if not loop.last }}
            {%- endfor %}
        ) as metadata,
        try_cast(case when envelope.op = 'd' then envelope.before else envelope.after end as map<string, variant>) as image,
        map_filter(
            case when envelope.op = 'u' then try_cast(envelope.before as map<string, variant>) end,
            (field, value) -> field in ({{ highwater.quoted_texts(highwater.names_in_records(highwater.key_columns(entity))) or 'null' }})
        ) as old_image,
        get(filter(document.schema.fields, part -> part.field in ('after', 'before')), 0).fields as schema_types
    from (
        select
            *,
            -- with a schema the envelope is the payload
            coalesce(
                document.payload, struct(document.before, document.after, document.source, document.op)
            ) as envelope
        from (
            {{- highwater.json_records(
                records, 'struct<schema: struct<fields: array<struct<field: string, fields: ' ~ highwater.debezium_schema_fields() ~ '>>>, payload: struct<'
                ~ envelope ~ '>, ' ~ envelope ~ '>'
            ) | indent(8) }}
        )
    )
{%- endmacro -%}

{%- macro _debezium_flattened(records, source_fields, feed) %}
    {%- set prefix = highwater.feed_setting(feed, 'prefix') %}
    select
        *,
        image is not null as is_readable,
        struct(
            coalesce({{ highwater._debezium_metadata('op', prefix) }}, case meta['__deleted'] when 'true' then 'd' when 'false' then 'u' end) as op,
            {%- for name in source_fields %}
            {{ highwater._debezium_metadata(name, prefix) }} as {{ name }}{{ ',' if not loop.last }}
            {%- endfor %}
        ) as metadata,
        cast(null as map<string, variant>) as old_image,
        document_schema.fields as schema_types
    from (
        select
            *,
            cast(map_filter(image, (field, value) -> startswith(field, '__')
                {%- if prefix is not none %} or startswith(field, {{ highwater.sql_text(prefix) }}){% endif %}) as map<string, string>) as meta
        from (
            select
                *,
                -- with a schema the row is the payload
                if(is_wrapped, try_cast(document['payload'] as map<string, variant>), document) as image,
                if(is_wrapped, try_cast(document['schema'] as struct<fields: {{ highwater.debezium_schema_fields() }}>), null) as document_schema
            from (
                select
                    *,
                    -- {schema, payload}, and nothing else
                    coalesce(map_contains_key(document, 'payload') and map_contains_key(document, 'schema') and size(document) = 2, false) as is_wrapped
                from (
                    {{- highwater.json_records(records, 'map<string, variant>') | indent(16) }}
                )
            )
        )
    )
{%- endmacro -%}

{%- macro _debezium_metadata(name, prefix) -%}
    {#- the envelope has its own ts_us, when the connector came to the change -#}
    {%- set names = ['source_' ~ name] if name == 'ts_us' else [name] if name == 'source_ts_ms' else ['source_' ~ name, name] -%}
    {%- set fields = [] -%}
    {%- for each in ([] if prefix is none else [prefix]) + ['__'] -%}
        {%- for field in names -%}
            {%- do fields.append('meta[' ~ highwater.sql_text(each ~ field) ~ ']') -%}
        {%- endfor -%}
    {%- endfor -%}
{{ fields[0] if fields | length == 1 else 'coalesce(' ~ fields | join(', ') ~ ')' }}
{%- endmacro -%}

{%- macro _debezium_untold(feed) -%}
    {%- set prefix = highwater.feed_setting(feed, 'prefix') -%}
    {%- set begins = '__' if prefix is none else '__ and ' ~ prefix -%}
    {%- set fields = highwater.debezium_position_fields(feed) -%}
    {%- set told = fields | map('replace', 'source_', '') | list -%}
    {%- set where = ' (add.fields), or declare as `prefix` what names of metadata begin with; headers are not read' %}
when metadata.op is null
    then {{ highwater.sql_text('unknown_operation: it has no op under ' ~ begins ~ ', and no __deleted: let the producer add op' ~ where) }}
    {%- if fields %}
when position is null and not is_baseline and coalesce({% for name in fields %}metadata.{{ name }}{{ ', ' if not loop.last }}{% endfor %}) is null
    then {{ highwater.sql_text(
        'unreadable_sequence: it has no ' ~ told | join(' or ') ~ ' under __source_ or ' ~ begins ~ ': let the producer add source.'
        ~ told | join(',source.') ~ where
    ) }}
    {%- endif %}
{%- endmacro -%}

{%- macro _is_available(unavailable) -%}
    {#- the forms that Debezium 3.6 writes it in -#}
    {%- set word = highwater.sql_text(unavailable) -%}
    {%- set bytes = unavailable.encode() | list -%}
value is null or (
    value not in (
        {{ word }},
        base64({{ word }}),
        -- as the only element of an array, as an entry of a map
        {{ highwater.sql_text('["' ~ unavailable ~ '"]') }},
        concat('["', base64({{ word }}), '"]'),
        {{ highwater.sql_text('{"' ~ unavailable ~ '":"' ~ unavailable ~ '"}') }},
        -- as an array of numbers, one for each byte
        '[{% for byte in bytes %}{{ byte - 256 if byte > 127 else byte }}{{ ',' if not loop.last }}{% endfor %}]',
        -- as an array of the UUID that is named by it
        regexp_replace(
            md5({{ word }}), '(.{8})(.{4}).(.{3})(.)(.{3})(.{12})',
            concat('["$1-$2-3$3-', substr('89ab', 1 + conv(substr(md5({{ word }}), 17, 1), 16, 10) % 4, 1), '$5-$6"]')
        )
    )
)
{%- endmacro -%}
