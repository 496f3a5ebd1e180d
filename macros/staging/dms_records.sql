{%- macro dms_records(records, feed, table, entity) -%}
    {%- set columns = entity_columns(entity) -%}
    {%- set delivered = delivered_columns(feed, table) -%}
    {%- set has_names = feed_setting(feed, 'format') == 'dms-parquet' or feed_setting(feed, 'header', false) -%}
    {%- set sequence_column = feed_setting(feed, 'sequence_column') -%}
    {%- set timestamp_column = feed_setting(feed, 'timestamp_column') -%}
    {%- set source_name = feed ~ '.' ~ table -%}
    {%- set baseline = baseline_condition(feed, "source_file rlike '/LOAD[0-9A-Fa-f]{8}[.][^/]*$'") -%}
    {%- set sequence -%}
case
    when is_baseline then {{ lowest_sequence() }}
    {%- if sequence_column %}
    -- 16 digits of time and 19 of a counter
    when metadata.sequence rlike '^[0-9]{35}$'
        then {{ sortable_sequence([
            {'text': 'substr(metadata.sequence, 1, 16)', 'base': 'decimal'},
            {'text': 'substr(metadata.sequence, 17)', 'base': 'decimal'},
        ]) | indent(8) }}
    {%- else %}
    -- the time in the name of the file, then the place in it
    else {{ sortable_sequence([
            {'text': "replace(metadata.sequence, '-')", 'base': 'decimal'},
            {'text': 'cast(source_line as string)', 'base': 'decimal'},
        ]) | indent(8) }}
    {%- endif %}
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
            {%- if feed_setting(feed, 'header', false) %}
            when {{ _lacks('fields', columns | map(attribute='field') | list) }} then 'wrong_column_count'
            {%- elif not has_names %}
            when values_delivered not in ({{ delivered | length }}, {{ delivered | length + 1 }}) then 'wrong_column_count'
            -- a change that lost a value, not a row of a full load
            when not has_operation and not is_baseline and fields['1'] in ('I', 'U', 'D') then 'wrong_column_count'
            {%- endif %}
        end as problem,
        struct(
            {%- for column in columns %}
            {{ _dms_value(column.field, delivered, has_names, source_name) }} as `{{ column.field }}`{{ ',' if not loop.last }}
            {%- endfor %}
        ) as fields,
        struct(
            {%- for column in columns if column.name in entity_key(entity) %}
            {%- set before = feed_setting(feed, 'before_prefix', 'BI_') ~ column.field %}
            {{ _dms_value(before, delivered, has_names, source_name) if has_names or before in delivered else 'cast(null as string)' }} as `{{ column.field }}`
            {{- ',' if not loop.last }}
            {%- endfor %}
        ) as old_fields,
        metadata.operation,
        case
            -- files of a full load, and of feeds of inserts only, need not say it
            when not has_operation then 'insert'
            when metadata.operation = 'I' then 'insert'
            when metadata.operation = 'U' then 'update'
            when metadata.operation = 'D' then 'delete'
        end as change_type,
        metadata.sequence,
        {{ sequence_in_epoch(feed, sequence) | indent(8) }} as change_sequence_number,
        metadata.commit_time,
        try_cast(metadata.commit_time as timestamp) as changed_at,
        is_baseline,
        cast(null as string) as source_identity
    from (
        select
            *,
            {{ baseline }} as is_baseline
        from (
            select
                *,
                struct(
                    upper({{ "coalesce(fields['Op'], fields['op'])" if has_names else "case when has_operation then fields['1'] end" }}) as operation,
                    {{ _dms_value(sequence_column, delivered, has_names, source_name) if sequence_column else "regexp_extract(source_file, '([0-9]{8}-[0-9]{9,10})[^/0-9][^/]*$', 1)" }} as sequence,
                    {{ _dms_value(timestamp_column, delivered, has_names, source_name) if timestamp_column else 'cast(null as string)' }} as commit_time
                ) as metadata
            from (
                select
                    *,
                    size(fields) as values_delivered,
                    {{ "coalesce(fields['Op'], fields['op']) is not null" if has_names else 'size(fields) = ' ~ (delivered | length + 1) }} as has_operation
                from {{ records }}
            )
        )
    )
{%- endmacro -%}

{%- macro _dms_value(field, delivered, has_names, source_name) -%}
    {%- if has_names -%}
fields['{{ field }}']
    {%- else -%}
        {%- set place = delivered_value(field, delivered, false, source_name) | trim -%}
case when has_operation then fields['{{ delivered.index(field) + 2 if field in delivered else field }}'] else {{ place }} end
    {%- endif -%}
{%- endmacro -%}
