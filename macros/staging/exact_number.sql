{%- macro exact_number(value, text, path, data_type) -%}
    {%- if data_type.startswith('decimal') and _decimal_digits(data_type)[0] > 15 -%}
case
    -- from_json passes JSON numbers through a double: long ones are taken from the text itself
    when {{ text }} rlike '[:,\\[][ \t\r\n]*-?[0-9.]{16}[0-9.eE]'
        then coalesce(
            -- a variant holds 38 digits of a number, and no document that has a name twice
            case
                when {{ text }} not rlike '[:][ ]*-?([0-9][.]?){39}'
                    then try_variant_get(try_parse_json({{ text }}), '{{ path }}', 'string')
            end,
            concat('not exact: ', {{ value }})
        )
    else {{ value }}
end
    {%- else -%}
{{ value }}
    {%- endif -%}
{%- endmacro -%}
