{%- macro validity_columns() -%}
    {{ return(['valid_from_sequence', 'valid_to_sequence', 'valid_from', 'valid_to', 'is_current', 'log_batch']) }}
{%- endmacro -%}
