{%- macro exported_records(records, feed, entity=none) -%}
    select
        source_file,
        source_line,
        landing_batch,
        landed_at,
        record,
        {%- if entity %}
        case
            when problem is not null then problem
            {{- highwater.missing_fields('fields', highwater.entity_columns(entity) | map(attribute='field')) | indent(12) }}
        end as problem,
        {%- else %}
        problem,
        {%- endif %}
        fields as image,
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
