{%- macro parts_of_changes(typed, entity) -%}
    {%- set key = entity_key(entity) -%}
    {%- set columns = entity_columns(entity) -%}
    select
        {%- for column in columns %}
        {%- if column.name in key %}
        case part when 'change' then {{ column.name }} when 'old_key' then old_{{ column.name }} end as {{ column.name }},
        {%- else %}
        case part when 'change' then {{ column.name }} end as {{ column.name }},
        {%- endif %}
        {%- endfor %}
        misfits,
        case part when 'change' then present_columns end as present_columns,
        change_sequence_number,
        case part when 'change' then change_type else 'delete' end as change_type,
        changed_at,
        part = 'old_key' as is_derived,
        source_file,
        source_line,
        landing_batch,
        landed_at,
        record,
        problem,
        operation,
        sequence,
        commit_time,
        is_baseline,
        source_identity
    from {{ typed }}
    lateral view explode(
        case
            -- an update that moves the row to another key: the old key is deleted by the same record
            when change_type in ('insert', 'update')
                {%- for column in key %}
                and {{ column }} is not null
                and old_{{ column }} is not null
                {%- endfor %}
                and (
                    {%- for column in key %}
                    {{ 'or ' if not loop.first }}{{ column }} <> old_{{ column }}
                    {%- endfor %}
                )
                then array('change', 'old_key')
            else array('change')
        end
    ) as part
{%- endmacro -%}
