{%- macro change_contract(typed, feed, entity) -%}
    {%- set columns = entity_columns(entity) | map(attribute='name') | list -%}
    {%- set key = entity_key(entity) -%}
    select
        {%- for column in columns %}
        {{ column }},
        {%- endfor %}
        change_sequence_number,
        change_type,
        change_type = 'delete' as is_deleted,
        changed_at,
        -- NULL: every record carries the whole row
        cast(null as array<string>) as present_columns,
        -- xxhash64 passes over NULLs, so where they are is hashed too
        xxhash64(
            change_type,
            {{ columns | join(', ') }},
            array({% for column in columns %}{{ column }} is null{{ ', ' if not loop.last }}{% endfor %})
        ) as change_hash,
        source_file,
        source_line,
        '{{ feed }}' as feed,
        landing_batch,
        landed_at,
        rejection_reason,
        case rejection_reason
            when 'unknown_operation' then concat('operation is ', coalesce(to_json(array(operation)), 'absent'))
            when 'unreadable_sequence' then concat('sequence is ', coalesce(to_json(array(sequence)), 'absent'))
            when 'unreadable_commit_time' then concat('commit time is ', to_json(array(commit_time)))
            when 'null_key' then 'the key is {{ key | join(', ') }}'
            when 'value_does_not_fit' then array_join(misfits, '; ')
        end as rejection_detail,
        case when rejection_reason is not null then record end as record
    from (
        select
            *,
            case
                when problem is not null then problem
                when change_type is null then 'unknown_operation'
                when change_sequence_number is null then 'unreadable_sequence'
                when commit_time is not null and changed_at is null then 'unreadable_commit_time'
                when size(misfits) > 0 then 'value_does_not_fit'
                when {% for column in key %}{{ column }} is null{{ ' or ' if not loop.last }}{% endfor %} then 'null_key'
            end as rejection_reason
        from {{ typed }}
    )
{%- endmacro -%}
