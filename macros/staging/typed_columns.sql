{%- macro typed_columns(parsed, entity, binary_encoding='base64') -%}
    {%- set columns = entity_columns(entity) -%}
    {%- set key = entity_key(entity) -%}
    select
        {%- for column in columns %}
        {%- set text = 'fields[\'' ~ column.field ~ '\']' %}
        {{ typed_value(text, column.data_type, binary_encoding) }} as {{ column.name }},
        {%- endfor %}
        array_compact(array(
            {%- for column in columns if column.data_type != 'string' %}
            {%- set text = 'fields[\'' ~ column.field ~ '\']' %}
            case
                when {{ text }} is not null
                    and not ({{ fits_type(text, column.data_type, binary_encoding) }})
                    {%- if column.name not in key %}
                    -- a delete is told by its key, whatever else it carries
                    and change_type is distinct from 'delete'
                    {%- endif %}
                    then concat('{{ column.name }} = ', to_json(array({{ text }})), ' does not fit {{ column.data_type }}')
            end
            {{- ',' if not loop.last }}
            {%- endfor %}
        )) as misfits,
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
        commit_time
    from {{ parsed }}
{%- endmacro -%}
