{%- macro dms_records(records, feed, table, entity) -%}
    {%- set fields = highwater.entity_columns(entity) | map(attribute='field') | list -%}
    {%- set delivered = highwater.delivered_columns(feed, table) -%}
    {%- set has_names = highwater.feed_setting(feed, 'format') == 'dms-parquet' or highwater.feed_setting(feed, 'header', false) -%}
    {%- set sequence_column = highwater.feed_setting(feed, 'sequence_column') -%}
    {%- set timestamp_column = highwater.feed_setting(feed, 'timestamp_column') -%}
    {%- set no_supplement = highwater.feed_setting(feed, 'no_supplement') -%}
    {%- set baseline = highwater.baseline_condition(feed, "source_file rlike '/LOAD[0-9A-Fa-f]{8}[.][^/]*$'") -%}
    {%- if not has_names -%}
        {%- set wanted = (fields + [sequence_column, timestamp_column]) | select | list -%}
        {%- do highwater.refuse_missing_fields(wanted, delivered, feed ~ '.' ~ table) -%}
    {%- endif -%}
    {%- set sequence -%}
case
    when is_baseline then {{ highwater.lowest_sequence() }}
    {%- if sequence_column %}
    -- 16 digits of time and 19 of a counter
    when metadata.sequence rlike '^[0-9]{35}$'
        then {{ highwater.sortable_sequence([
            {'text': 'substr(metadata.sequence, 1, 16)', 'base': 'decimal'},
            {'text': 'substr(metadata.sequence, 17)', 'base': 'decimal', 'is_unsigned': true},
        ]) | indent(8) }}
    {%- else %}
    -- the time in the name of the file, then the ordinal in it
    else {{ highwater.sortable_sequence([
            {'text': "replace(metadata.sequence, '-')", 'base': 'decimal', 'is_unsigned': true},
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
            {%- if highwater.feed_setting(feed, 'header', false) %}
            {{- highwater.missing_fields('fields', fields) | indent(12) }}
            {%- elif not has_names %}
            when size(fields) not in ({{ delivered | length }}, {{ delivered | length + 1 }})
                then concat('wrong_column_count: ', size(fields), ' values where {{ delivered | length }} (a row) or {{ delivered | length + 1 }} (a change) are declared')
            -- a change that lost a value, not a row of a full load
            when not has_operation and not is_baseline and fields['1'] in ('I', 'U', 'D')
                then concat('wrong_column_count: ', size(fields), ' values, of which the first is an operation, where {{ delivered | length + 1 }} are declared')
            {%- endif %}
        end as problem,
        {%- if no_supplement %}
        -- a value that the log did not have is absent, not changed
        map_filter(image, (field, value) -> not value <=> {{ highwater.sql_text(no_supplement) }}) as image,
        {%- else %}
        image,
        {%- endif %}
        map_from_arrays(
            array({{ highwater.quoted_texts(highwater.key_columns(entity) | map(attribute='field')) }}),
            transform(
                array({{ highwater.quoted_texts(highwater.key_columns(entity) | map(attribute='field')) }}),
                field -> image[concat({{ highwater.sql_text(highwater.feed_setting(feed, 'before_prefix', 'BI_')) }}, field)]
            )
        ) as old_image,
        metadata.operation,
        case
            -- files of a full load, and of feeds of inserts only, need not say it
            when not has_operation then 'insert'
            when metadata.operation = 'I' then 'insert'
            when metadata.operation = 'U' then 'update'
            when metadata.operation = 'D' then 'delete'
        end as change_type,
        metadata.sequence,
        {{ highwater.sequence_in_epoch(feed, sequence) | indent(8) }} as change_sequence_number,
        metadata.commit_time,
        try_cast(metadata.commit_time as timestamp) as changed_at,
        is_baseline,
        is_baseline as is_snapshot,
        cast(null as string) as source_identity
    from (
        select
            *,
            {{ baseline }} as is_baseline
        from (
            select
                *,
                struct(
                    upper(case when has_operation then {{ "fields['Op']" if has_names else "fields['1']" }} end) as operation,
                    {{ 'image[' ~ highwater.sql_text(sequence_column) ~ ']' if sequence_column else "regexp_extract(source_file, '([0-9]{8}-[0-9]{9,10})[^/0-9][^/]*$', 1)" }} as sequence,
                    {{ 'image[' ~ highwater.sql_text(timestamp_column) ~ ']' if timestamp_column else 'cast(null as string)' }} as commit_time
                ) as metadata
            from (
                select
                    *,
                    {%- if has_names %}
                    fields as image
                    {%- else %}
                    {{ highwater.named_values('if(has_operation, slice(map_values(fields), 2, ' ~ (delivered | length) ~ '), map_values(fields))', delivered) | indent(20) }} as image
                    {%- endif %}
                from (
                    select
                        *,
                        {%- if has_names %}
                        -- DMS writes it before the table's own columns
                        coalesce(get(map_keys(fields), 0) = 'Op', false) as has_operation
                        {%- else %}
                        size(fields) = {{ delivered | length + 1 }} as has_operation
                        {%- endif %}
                    from {{ records }}
                )
            )
        )
    )
{%- endmacro -%}
