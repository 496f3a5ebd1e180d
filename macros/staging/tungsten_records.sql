{%- macro tungsten_records(records, feed, table, entity) -%}
    {%- set columns = entity_columns(entity) -%}
    {%- set stage = feed_setting(feed, 'columns', ['opcode', 'seqno', 'row_id', 'commit_timestamp']) -%}
    {%- set delivered = stage + delivered_columns(feed, table) -%}
    {%- set has_header = feed_setting(feed, 'header', false) -%}
    {%- set baseline = baseline_condition(feed, 'false') -%}
    {%- set has_service = 'service' in stage -%}
    {%- set sequence -%}
case
    when is_baseline then {{ lowest_sequence() }}
    -- rows of one transaction are told apart by their place in the file: row_id is another one after a restart
    when metadata.row_id rlike '^[0-9]{1,19}\\z'
        then {{ sortable_sequence([{'text': 'metadata.seqno', 'base': 'decimal'}]) | indent(8) }}
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
            when size(fields) <> {{ delivered | length }} then 'wrong_column_count'
            {%- if has_header %}
            when {{ _lacks('fields', delivered) }} then 'wrong_column_count'
            {%- endif %}
            {%- if has_service and 'service' not in columns | selectattr('name', 'in', entity_key(entity)) | map(attribute='field') | list %}
            {{- unknown_source(feed, is_required=true) | indent(12) }}
            {%- endif %}
        end as problem,
        struct(
            {%- for column in columns %}
            {{ delivered_value(column.field, delivered, has_header, feed ~ '.' ~ table) }} as `{{ column.field }}`{{ ',' if not loop.last }}
            {%- endfor %}
        ) as fields,
        metadata.opcode as operation,
        case upper(metadata.opcode)
            when 'I' then 'insert'
            when 'UI' then 'update'
            when 'U' then 'update'
            when 'D' then 'delete'
            when 'UD' then 'delete'
        end as change_type,
        concat_ws(' ', metadata.seqno, metadata.row_id) as sequence,
        {{ sequence_in_epoch(feed, sequence) | indent(8) }} as change_sequence_number,
        metadata.commit_timestamp as commit_time,
        case
            when metadata.commit_timestamp rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?$'
                then try_cast(metadata.commit_timestamp as timestamp)
        end as changed_at,
        is_baseline,
        source_identity
    from (
        select
            *,
            {{ 'metadata.service' if has_service else 'cast(null as string)' }} as source_identity,
            {{ baseline }} as is_baseline
        from (
            select
                *,
                struct(
                    {%- for name in ['opcode', 'seqno', 'row_id', 'commit_timestamp'] + (['service'] if has_service else []) %}
                    {{ delivered_value(name, delivered, has_header, feed ~ '.' ~ table) }} as {{ name }}{{ ',' if not loop.last }}
                    {%- endfor %}
                ) as metadata
            from {{ records }}
        )
    )
{%- endmacro -%}
