{%- macro is_undeclared_baseline() -%}
rejection_reason is null and substr(change_sequence_number, 17) = concat('/', {{ highwater.lowest_sequence() }})
{%- endmacro -%}
