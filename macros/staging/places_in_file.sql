{%- macro places_in_file(changes, entity, has_parts=false, has_row_number=false) -%}
    {%- set columns = entity_columns(entity) | map(attribute='name') | list -%}
    {%- set key = entity_key(entity) -%}
    select
        *,
        lower(lpad(hex(dense_rank() over (
            partition by landing_batch, source_file, change_sequence_number{% for column in key %}, {{ column }}{% endfor %}
            -- all old keys of one position go before any new key comes
            order by {{ 'is_derived desc, ' if has_parts }}first_line
        ) - 1), 16, '0')) as place
    from (
        select
            *,
            -- an exact copy stands where its original does
            min(source_line) over (
                partition by
                    landing_batch,
                    source_file,
                    change_sequence_number,
                    {%- if has_parts %}
                    is_derived,
                    {%- endif %}
                    {%- if has_row_number %}
                    sequence,
                    {%- endif %}
                    change_type,
                    {%- for column in columns %}
                    {{ column }}{{ ',' if not loop.last }}
                    {%- endfor %}
            ) as first_line
        from {{ changes }}
    )
{%- endmacro -%}
