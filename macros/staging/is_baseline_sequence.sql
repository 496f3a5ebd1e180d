{%- macro is_baseline_sequence(sequence) -%}
substr({{ sequence }}, 17) in (concat('/', {{ lowest_sequence() }}), concat('/', {{ lowest_sequence() }}, '/', {{ lowest_sequence() }}))
{%- endmacro -%}
