{%- macro exported_records(records, feed, entity, is_export=false) -%}
    {%- set fields = highwater.entity_columns(entity) | map(attribute='field') | list -%}
    select
        source_file,
        source_line,
        landing_batch,
        landed_at,
        record,
        case
            when problem is not null then problem
            {{- (highwater._foreign_header(fields) if is_export else highwater.missing_fields('fields', fields)) | indent(12) }}
        end as problem,
        {{ highwater._without_prefixes(feed, entity) if is_export else 'fields' }} as image,
        'INSERT' as operation,
        'insert' as change_type,
        cast(null as string) as sequence,
        {{ highwater.sequence_in_epoch(feed, highwater.lowest_sequence()) }} as change_sequence_number,
        cast(null as string) as commit_time,
        cast(null as timestamp) as changed_at,
        true as is_baseline,
        true as is_snapshot,
        cast(null as string) as source_identity
    from {{ records }}
{%- endmacro -%}

{%- macro _foreign_header(fields) %}
when not arrays_overlap(map_keys(fields), array({{ highwater.quoted_texts(fields) }})) then concat(
    'malformed_record: its file names ', left(array_join(map_keys(fields), ', '), 200),
    ' in the first line, and no column of the table: deliver it with a header, its values separated as the feed declares'
)
{%- endmacro -%}

{%- macro _without_prefixes(feed, entity) -%}
    {#- of bytes in hex, as databases print them: \x00ff, 0x00FF -#}
    {%- set fields = highwater.entity_columns(entity) | selectattr('data_type', 'eq', 'binary') | map(attribute='field') | list -%}
    {%- if not fields or highwater.feed_setting(feed, 'format') != 'csv' -%}
        {{ return('fields') }}
    {%- endif -%}
    transform_values(
            fields,
            (field, value) -> if(field in ({{ highwater.quoted_texts(fields) }}), regexp_replace(value, '^([\\\\]|0)x', ''), value)
        )
{%- endmacro -%}
