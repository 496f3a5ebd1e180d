{%- macro decimal_digits(data_type) -%}
    {%- set found = modules.re.match('^decimal\\(\\s*(\\d+)\\s*,\\s*(\\d+)\\s*\\)$', data_type) -%}
    {%- if not found -%}
        {{ exceptions.raise_compiler_error(
            "'" ~ data_type ~ "' is no complete type; write precision and scale, for example decimal(12,2)."
        ) }}
    {%- endif -%}
    {{ return([found.group(1) | int, found.group(2) | int]) }}
{%- endmacro -%}
