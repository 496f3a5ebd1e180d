{%- macro ends_of_rows(entity, rows) -%}
    {%- set ends = {} -%}
    {%- for column in highwater.bounded_key_columns(entity) -%}
        {%- set least = rows | map(attribute='least ' ~ column.name) | reject('none') | min(case_sensitive=true) -%}
        {%- set greatest = rows | map(attribute='greatest ' ~ column.name) | reject('none') | max(case_sensitive=true) -%}
        {%- do ends.update({
            'least ' ~ column.name: least | string if least is defined else none,
            'greatest ' ~ column.name: greatest | string if greatest is defined else none,
        }) -%}
    {%- endfor -%}
    {{ return(ends) }}
{%- endmacro -%}
