{%- macro typed_value(text, data_type, binary_encoding='base64') -%}
    {%- if data_type == 'string' -%}
        {{ text }}
    {%- elif data_type == 'binary' -%}
        try_to_binary({{ text }}, '{{ binary_encoding }}')
    {%- else -%}
        try_cast({{ text }} as {{ data_type }})
    {%- endif -%}
{%- endmacro -%}
