{%- macro key_bounds(entity, rows, side) -%}
    {%- set bounds = [] -%}
    {%- for column in highwater.bounded_key_columns(entity) -%}
        {%- set least = rows | map(attribute='least ' ~ column.name) | reject('none') | min(case_sensitive=true) -%}
        {%- set greatest = rows | map(attribute='greatest ' ~ column.name) | reject('none') | max(case_sensitive=true) -%}
        {%- if least is defined and greatest is defined -%}
            {%- do bounds.append(
                side ~ '.`' ~ column.name ~ '` between ' ~ highwater._literal(least, column.data_type) ~ ' and '
                ~ highwater._literal(greatest, column.data_type)
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(bounds) }}
{%- endmacro -%}

{%- macro _literal(value, data_type) -%}
    {#- a literal of exactly its type: a cast around it would hide it from Delta's choice of files -#}
    {%- if data_type == 'string' -%}
        {{ return("'" ~ (value[1:] | replace('\\', '\\\\') | replace("'", "\\'")) ~ "'") }}
    {%- elif data_type == 'date' -%}
        {{ return("date'" ~ value ~ "'") }}
    {%- endif -%}
    {{ return((value | int) ~ {'tinyint': 'Y', 'smallint': 'S', 'bigint': 'L'}.get(data_type, '')) }}
{%- endmacro -%}
