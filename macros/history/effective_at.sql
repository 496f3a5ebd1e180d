{%- macro effective_at(log, entity) -%}
coalesce(
    changed_at,
    case
        -- a baseline was there before anything is known, unless it begins an epoch anew
        when {{ highwater.is_baseline_sequence('change_sequence_number') }}
            {%- if highwater.entity_setting(entity, 'truncates', false) %}
            and not array_contains(
                (select collect_set(change_sequence_number) from {{ log }} where change_type = 'truncate' and is_derived),
                substr(change_sequence_number, 1, 16)
            )
            {%- endif %}
            then timestamp '1900-01-01'
        else landed_at
    end
)
{%- endmacro -%}
