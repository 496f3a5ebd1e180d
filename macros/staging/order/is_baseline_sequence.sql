{%- macro is_baseline_sequence(sequence) -%}
substr({{ sequence }}, 17) in (concat('/', {{ highwater.lowest_sequence() }}), concat('/', {{ highwater.lowest_sequence() }}, '/', {{ highwater.lowest_sequence() }}))
{%- endmacro -%}
