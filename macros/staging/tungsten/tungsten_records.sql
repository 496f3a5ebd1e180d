{%- macro tungsten_records(records, feed, table, entity) -%}
    {%- set columns = highwater.entity_columns(entity) -%}
    {%- set stage = highwater.feed_setting(feed, 'columns', ['opcode', 'seqno', 'row_id', 'commit_timestamp']) -%}
    {%- set periods = [] -%}
    {%- for period in highwater.column_periods(feed, table) -%}
        {%- do periods.append({'columns': stage + period.columns, 'when': period.when}) -%}
    {%- endfor -%}
    {%- set counts = periods | map(attribute='columns') | map('length') | unique | sort | list -%}
    {%- set has_header = highwater.feed_setting(feed, 'header', false) -%}
    {%- set baseline = highwater.baseline_condition(feed, 'false') -%}
    {%- set has_service = 'service' in stage -%}
    {%- set key_fields = highwater.fields_of_files(highwater.key_columns(entity), feed, table, entity) -%}
    {%- set is_delete = "upper(coalesce(get(map_values(fields), " ~ (stage.index('opcode') if 'opcode' in stage else 0) ~ "), '')) in ('D', 'UD')" -%}
    {%- set key = highwater.leading_key(periods, ['opcode', 'seqno', 'row_id'] + key_fields if key_fields else [], stage) -%}
    {%- set has_text_key = highwater.key_columns(entity) | selectattr('field', 'in', key_fields) | selectattr('data_type', 'eq', 'string') | list -%}
    {%- set is_told_by_key = is_delete ~ ' and size(fields) >= ' ~ key | length ~ (' and size(fields) < ' ~ counts[-1] if has_text_key and counts else '') -%}
    {%- do highwater.refuse_missing_fields(highwater.fields_of_files(columns, feed, table, entity), feed, table, stage) -%}
    {%- set position -%}
case
    when is_baseline then {{ highwater.lowest_sequence() }}
    -- rows of one transaction are told apart by their ordinal in the file: row_id is another one after a restart
    when metadata.row_id rlike '^[0-9]{1,19}\\z' and try_cast(metadata.row_id as bigint) is not null
        then {{ highwater.sortable_sequence([{'text': 'metadata.seqno', 'base': 'decimal'}]) | indent(8) }}
end
    {%- endset -%}
    {%- set problem %}
    {%- if has_header %}
{{- highwater.missing_of_periods('fields', stage + highwater.delivered_columns(feed, table), periods, "upper(metadata.opcode) not in ('D', 'UD')") }}
when size(fields) not in ({{ counts | join(', ') }}) and upper(metadata.opcode) not in ('D', 'UD')
    {%- elif counts | length == 1 and not key %}
when size(fields) <> {{ counts[0] }}
    {%- else %}
when image is null
    {%- endif %}
    then concat('wrong_column_count: ', size(fields), ' values where {{ counts | join(' or ') }} are declared')
    {%- if has_service and 'service' not in key_fields %}
{{- highwater.unknown_source(feed, is_required=true) }}
    {%- endif %}
    {%- endset -%}
    {%- set change_type -%}
case upper(metadata.opcode)
    when 'I' then 'insert'
    when 'UI' then 'update'
    when 'U' then 'update'
    when 'D' then 'delete'
    when 'UD' then 'delete'
end
    {%- endset -%}
    {%- set changed_at -%}
case
    when metadata.commit_timestamp rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?$'
        then try_cast(metadata.commit_timestamp as timestamp)
end
    {%- endset -%}
    {%- set rows -%}
    (
        select
            *,
            {{ 'metadata.service' if has_service else 'cast(null as string)' }} as source_identity,
            {{ baseline }} as is_baseline
        from (
            select
                *,
                struct(
                    {%- for name in ['opcode', 'seqno', 'row_id', 'commit_timestamp'] + (['service'] if has_service else []) %}
                    image[{{ highwater.sql_text(name) }}] as {{ name }}{{ ',' if not loop.last }}
                    {%- endfor %}
                ) as metadata
            from (
                select
                    *,
                    {{ 'fields' if has_header else highwater.named_values('map_values(fields)', periods, is_told_by_key, key) | indent(20) }} as image
                from {{ records }}
            )
        )
    )
    {%- endset -%}
    {{- highwater.parsed_records(rows, feed, entity, {
        'problem': problem,
        'image': 'image',
        'operation': 'metadata.opcode',
        'change_type': change_type,
        'sequence': "concat_ws(' ', metadata.seqno, metadata.row_id)",
        'change_sequence_number': position,
        'commit_time': 'metadata.commit_timestamp',
        'changed_at': changed_at,
        'source_identity': 'source_identity',
    }) -}}
{%- endmacro -%}
