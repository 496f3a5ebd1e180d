{%- macro dms_records(records, feed, table, entity) -%}
    {%- set fields = highwater.fields_of_files(highwater.entity_columns(entity), feed, table, entity) -%}
    {%- set later = highwater.entity_columns(entity) | selectattr('came_later') | map(attribute='field') | list -%}
    {%- set renamed = highwater.entity_columns(entity) | selectattr('former_fields') | map(attribute='field') | list -%}
    {%- set periods = highwater.column_periods(feed, table) -%}
    {%- set has_names = highwater.feed_setting(feed, 'format') == 'dms-parquet' or highwater.feed_setting(feed, 'header', false) -%}
    {%- set sequence_column = highwater.feed_setting(feed, 'sequence_column') -%}
    {%- set timestamp_column = highwater.feed_setting(feed, 'timestamp_column') -%}
    {%- set no_supplement = highwater.feed_setting(feed, 'no_supplement') -%}
    {%- set baseline = highwater.baseline_condition(feed, "source_file rlike '/LOAD[0-9A-Fa-f]{8}[.][^/]*$'") -%}
    {%- if not has_names -%}
        {%- set wanted = (fields + [sequence_column, timestamp_column]) | select | list -%}
        {%- do highwater.refuse_missing_fields(wanted, feed, table) -%}
    {%- endif -%}
    {%- set positions = highwater._dms_positions(periods, feed, table, entity, sequence_column, timestamp_column, baseline) -%}
    {%- set position -%}
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
    {%- set problem %}
    {%- if highwater.feed_setting(feed, 'header', false) %}
{{- highwater.missing_of_periods('fields', fields | reject('in', later + renamed) | list, periods, "metadata.operation is distinct from 'D'") }}
    {%- elif not has_names %}
when {{ positions.has_other_count }}
    then concat('wrong_column_count: ', size(fields), ' values where {{ positions.of_rows }} (a row) or {{ positions.of_changes }} (a change) are declared')
-- a change that lost a value, not a row of a full load
when not has_operation and not is_baseline and fields['1'] in ('I', 'U', 'D')
    then concat('wrong_column_count: ', size(fields), ' values, of which the first is an operation, where {{ positions.of_changes }} are declared')
    {%- if positions.unclear %}
when has_operation and {{ positions.is_load }} and size(fields) in ({{ positions.unclear | join(', ') }})
    then concat('wrong_column_count: ', size(fields), ' values, of which the first is an operation or a value of the row; `when` says which files are of the later period')
    {%- endif %}
    {%- endif %}
    {%- endset -%}
    {%- set is_withheld = 'value <=> ' ~ highwater.sql_text(no_supplement or '') -%}
    {%- set image -%}
        {%- if no_supplement -%}
-- a value that the log did not have is absent, not changed
map_filter(image, (field, value) -> not {{ is_withheld }})
        {%- else -%}
image
        {%- endif -%}
    {%- endset -%}
    {%- set key_fields = 'array(' ~ highwater.quoted_texts(highwater.key_columns(entity) | map(attribute='field')) ~ ')' -%}
    {%- set old_image -%}
map_from_arrays(
    {{ key_fields }},
    transform(
        {{ key_fields }},
        field -> image[concat({{ highwater.sql_text(highwater.feed_setting(feed, 'before_prefix', 'BI_')) }}, field)]
    )
)
    {%- endset -%}
    {%- set change_type -%}
case
    -- files of a full load, and of feeds of inserts only, need not say it
    when not has_operation then 'insert'
    when metadata.operation = 'I' then 'insert'
    when metadata.operation = 'U' then 'update'
    when metadata.operation = 'D' then 'delete'
end
    {%- endset -%}
    {%- set rows -%}
    (
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
                    {{ highwater.named_values(
                        'if(has_operation, slice(map_values(fields), 2, ' ~ positions.values_of_change ~ '), map_values(fields))',
                        periods, "has_operation and fields['1'] <=> 'D' and size(fields) > " ~ positions.key | length, positions.key
                    ) | indent(20) }} as image
                    {%- endif %}
                from (
                    select
                        *,
                        {%- if has_names %}
                        -- DMS writes it before the table's own columns
                        coalesce(get(map_keys(fields), 0) = 'Op', false) as has_operation
                        {%- else %}
                        {{ positions.has_operation | indent(24) }} as has_operation
                        {%- endif %}
                    from {{ records }}
                )
            )
        )
    )
    {%- endset -%}
    {{- highwater.parsed_records(rows, feed, entity, {
        'problem': problem,
        'image': image,
        'withheld': 'map_keys(map_filter(image, (field, value) -> ' ~ is_withheld ~ '))' if no_supplement and later else none,
        'old_image': old_image,
        'operation': 'metadata.operation',
        'change_type': change_type,
        'sequence': 'metadata.sequence',
        'change_sequence_number': position,
        'commit_time': 'metadata.commit_time',
        'changed_at': 'try_cast(metadata.commit_time as timestamp)',
    }) -}}
{%- endmacro -%}

{%- macro _dms_positions(periods, feed, table, entity, sequence_column, timestamp_column, baseline) -%}
    {#- Values have places only: how many a row and a change have tells them apart, and where two periods disagree their first value. -#}
    {%- set usual = "source_file rlike '/LOAD[0-9A-Fa-f]{8}[.][^/]*$'" -%}
    {%- set is_load = '(' ~ (usual if 'metadata' in baseline else baseline) ~ ')' -%}
    {%- set counts = periods | map(attribute='columns') | map('length') | unique | sort | list -%}
    {%- set changes = [] -%}
    {%- for count in counts -%}
        {%- do changes.append(count + 1) -%}
    {%- endfor -%}
    {%- set columns = highwater.entity_columns(entity) -%}
    {#- columns that hold no operation and no half of a text -#}
    {%- set numbers = (columns | rejectattr('data_type', 'eq', 'string') | map(attribute='field') | list) + [timestamp_column, sequence_column] -%}
    {%- set key_fields = highwater.fields_of_files(highwater.key_columns(entity), feed, table, entity) -%}
    {%- set needed = (key_fields + [sequence_column]) | select | list if key_fields else [] -%}
    {%- set key = highwater.leading_key(periods, needed, [timestamp_column]) -%}
    {%- set of_both = [] -%}
    {%- set unclear = [] -%}
    {%- for period in periods if period.columns | length in changes -%}
        {%- set count = period.columns | length -%}
        {%- if period.when -%}
            {%- do of_both.insert(0, "when size(fields) = " ~ count ~ ' and (' ~ period.when ~ ") then not " ~ is_load ~ " and coalesce(fields['1'] in ('I', 'U', 'D'), false)") -%}
        {%- else -%}
            {%- do of_both.append("when size(fields) = " ~ count ~ " then coalesce(if(" ~ is_load ~ ", fields['1'] = 'I', fields['1'] in ('I', 'U', 'D')), false)") -%}
            {%- if period.columns[0] not in numbers -%}
                {%- do unclear.append(count) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set by_count = 'size(fields) = ' ~ changes[0] if changes | length == 1 else 'size(fields) in (' ~ changes | join(', ') ~ ')' -%}
    {%- set has_operation -%}
        {%- if of_both -%}
case
    -- as many values as a row of one period and a change of another have: the first one tells
    {%- for branch in of_both %}
    {{ branch }}
    {%- endfor %}
    else {{ by_count }}
end
        {%- else -%}
{{ by_count }}
        {%- endif -%}
        {%- if key %}
-- a delete that lacks values, or has more, than are declared
or (
    fields['1'] <=> 'D' and not {{ is_load }} and size(fields) > {{ key | length }}
    {{- ' and size(fields) not in (' ~ counts | join(', ') ~ ')' if periods | map(attribute='columns') | map('first') | reject('in', numbers) | list }}
    {{- ' and size(fields) < ' ~ changes[-1] if key | reject('in', numbers) | list }}
)
        {%- endif -%}
    {%- endset -%}
    {{ return({
        'has_operation': has_operation, 'is_load': is_load, 'unclear': unclear, 'key': key,
        'has_other_count': 'size(fields) not in (' ~ counts[0] ~ ', ' ~ changes[0] ~ ')' if counts | length == 1 and not key else 'image is null',
        'values_of_change': counts[0] if counts | length == 1 else 'size(fields) - 1',
        'of_rows': counts | join(' or '), 'of_changes': changes | join(' or '),
    }) }}
{%- endmacro -%}
