{%- macro places_in_file(changes, entity, has_parts=false, has_row_number=false, has_index=false) -%}
    select
        *,
        lower(lpad(hex(dense_rank() over (
            partition by landing_batch, source_file, change_sequence_number
                {%- for column in highwater.entity_key(entity) %}, typed.`{{ column }}`{% endfor %}
            {%- if has_index %}
            -- one row after the other; of each, its old key before its new one
            order by source_line, index{{ ', is_derived desc' if has_parts }}
            {%- else %}
            -- all old keys of one position go before any new key comes
            order by {{ 'is_derived desc, ' if has_parts }}first_line
            {%- endif %}
        ) - 1), 16, '0')) as ordinal
    {%- if has_index %}
    from {{ changes }}
    {%- else %}
    from (
        select
            *,
            -- an exact copy has the ordinal of its original
            min(source_line) over (
                partition by
                    landing_batch, source_file, change_sequence_number
                    {{- ', is_derived' if has_parts }}{{ ', sequence' if has_row_number }}, change_hash
            ) as first_line
        from {{ changes }}
    )
    {%- endif %}
{%- endmacro -%}
