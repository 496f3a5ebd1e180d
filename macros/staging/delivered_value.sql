{%- macro delivered_value(field, delivered, has_header, source_name) -%}
    {%- if execute and delivered and field not in delivered -%}
        {{ exceptions.raise_compiler_error(
            "the files of " ~ source_name ~ " hold no column '" ~ field ~ "'; declared are: " ~ delivered | join(', ') ~ "."
        ) }}
    {%- endif -%}
fields['{{ field if has_header or not delivered else delivered.index(field) + 1 }}']
{%- endmacro -%}

{%- macro _lacks(fields, names) -%}
size(array_except(array({{ _quoted(names) }}), map_keys({{ fields }}))) > 0
{%- endmacro -%}
