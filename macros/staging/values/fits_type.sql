{%- macro fits_type(text, value, data_type, binary_encoding='base64') -%}
    {%- set day = '\\\\d{4,6}-\\\\d\\\\d-\\\\d\\\\d' -%}
    {%- set time = '\\\\d\\\\d:\\\\d\\\\d(:\\\\d\\\\d([.]\\\\d{1,6}0*)?)?' -%}
    {%- set midnight = '00:00(:00([.]0+)?)?' -%}
    {%- set zone = ' ?(Z|UTC|[+-][\\\\d:]+)' -%}
    {%- if data_type == 'string' -%}
        true
    {%- elif data_type in ('tinyint', 'smallint', 'int', 'bigint', 'boolean') -%}
        {{ value }} is not null
    {%- elif data_type in ('float', 'double') -%}
        {#- Java's own suffixes and hex digits are no numbers -#}
        {{ value }} is not null and (abs({{ value }}) <> double('infinity') or lower({{ text }}) rlike 'inf') and {{ text }} not rlike '[0-9.][dDfF]|[xX]'
    {%- elif data_type.startswith('decimal') -%}
        {%- set scale = highwater.decimal_digits(data_type)[1] -%}
        {{ value }} is not null and if({{ text }} rlike '[eE]', {{ value }} = try_cast({{ text }} as double), {{ text }} not rlike '[.]\\d{{ '{' ~ scale ~ '}' }}\\d*[1-9]')
    {%- elif data_type == 'date' -%}
        {{ value }} is not null and {{ text }} rlike '^{{ day }}([T ]{{ midnight }}({{ zone }})?)?$'
    {%- elif data_type == 'timestamp' -%}
        {{ value }} is not null and {{ text }} rlike '^{{ day }}([T ]{{ time }}({{ zone }})?)?$'
    {%- elif data_type == 'timestamp_ntz' -%}
        {{ value }} is not null and {{ text }} rlike '^{{ day }}([T ]{{ time }})?$'
    {%- elif data_type == 'binary' and binary_encoding == 'base64' -%}
        length({{ text }}) % 4 = 0 and {{ text }} rlike '^[A-Za-z0-9+/]*={0,2}\\z'
    {%- elif data_type == 'binary' -%}
        length({{ text }}) % 2 = 0 and {{ text }} rlike '^[A-Fa-f0-9]*\\z'
    {%- else -%}
        {{ exceptions.raise_compiler_error(
            "fits_type: no column can be declared as '" ~ data_type ~ "'. Types are: string, boolean, tinyint, "
            ~ "smallint, int, bigint, float, double, decimal(p,s), date, timestamp, timestamp_ntz, binary."
        ) }}
    {%- endif -%}
{%- endmacro -%}
