{%- macro typed_columns(parsed, entity, binary_encoding='base64', has_present=false, has_old_key=false) -%}
    {%- set columns = entity_columns(entity) -%}
    {%- set key = entity_key(entity) -%}
    select
        {%- for column in columns %}
        {%- set text = "fields['" ~ column.field ~ "']" %}
        {{ typed_value(text, column.data_type, binary_encoding) }} as {{ column.name }},
        {%- endfor %}
        concat_ws(' and '
            {%- for column in columns if column.data_type != 'string' %},
            {%- set text = "fields['" ~ column.field ~ "']" %}
            case
                when {{ text }} is not null
                    and not ({{ fits_type(text, column.data_type, binary_encoding) }})
                    {%- if column.name not in key %}
                    -- a delete is told by its key, whatever else it carries
                    and change_type is distinct from 'delete'
                    {%- endif %}
                    then concat('{{ column.name }} = ', to_json(array({{ text }})), ' does not fit {{ column.data_type }}')
            end
            {%- endfor %}
        ) as misfits,
        {%- if has_present %}
        -- NULL: the whole row; a delete needs its key only
        case
            when change_type in ('insert', 'update')
                and size(array_except(array({{ _quoted(columns | map(attribute='field')) }}), present)) > 0
                then array_compact(array(
                    {%- for column in columns %}
                    case when array_contains(present, '{{ column.field }}') then '{{ column.name }}' end
                    {{- ',' if not loop.last }}
                    {%- endfor %}
                ))
        end as present_columns,
        {%- else %}
        cast(null as array<string>) as present_columns,
        {%- endif %}
        {%- if has_old_key %}
        {%- for column in columns if column.name in key %}
        {%- set text = "old_fields['" ~ column.field ~ "']" %}
        {{ typed_value(text, column.data_type, binary_encoding) }} as old_{{ column.name }},
        {%- endfor %}
        {%- endif %}
        change_sequence_number,
        change_type,
        changed_at,
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
    from {{ parsed }}
{%- endmacro -%}

{%- macro _quoted(words) -%}
'{{ words | join("', '") }}'
{%- endmacro -%}
