{%- macro exported_records(records) -%}
    select
        source_file,
        source_line,
        landing_batch,
        landed_at,
        record,
        problem,
        fields,
        'INSERT' as operation,
        'insert' as change_type,
        cast(null as string) as sequence,
        {{ lowest_sequence() }} as change_sequence_number,
        cast(null as string) as commit_time,
        cast(null as timestamp) as changed_at
    from {{ records }}
{%- endmacro -%}
