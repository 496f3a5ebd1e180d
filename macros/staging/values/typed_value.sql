{%- macro typed_value(text, data_type, binary_encoding='base64') -%}
    {%- if data_type == 'string' -%}
        {{ text }}
    {%- elif data_type == 'binary' -%}
        try_to_binary({{ text }}, '{{ binary_encoding }}')
    {%- elif data_type in ('tinyint', 'smallint', 'int', 'bigint') -%}
        {#- 101.0000000000 is 101 -#}
        coalesce(try_cast({{ text }} as {{ data_type }}), try_cast(regexp_replace({{ text }}, '[.]0+$', '') as {{ data_type }}))
    {%- else -%}
        try_cast({{ text }} as {{ data_type }})
    {%- endif -%}
{%- endmacro -%}
