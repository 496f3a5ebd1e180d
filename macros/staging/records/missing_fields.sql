{%- macro missing_fields(fields, names, condition=none) -%}
    {%- set lacking = 'array_except(array(' ~ highwater.quoted_texts(names | list) ~ '), map_keys(' ~ fields ~ '))' %}
when {{ condition ~ ' and ' if condition }}size({{ lacking }}) > 0 then concat('wrong_column_count: it has no ', array_join({{ lacking }}, ', '))
{%- endmacro -%}
