{%- macro named_values(texts, names) -%}
case
    when size({{ texts }}) = {{ names | length }}
        then map_from_arrays(array({{ highwater._quoted(names) }}), {{ texts }})
end
{%- endmacro -%}

{%- macro _lacking(fields, names, condition=none) -%}
    {%- set lacking = 'array_except(array(' ~ highwater._quoted(names | list) ~ '), map_keys(' ~ fields ~ '))' %}
when {{ condition ~ ' and ' if condition }}size({{ lacking }}) > 0 then concat('wrong_column_count: it has no ', array_join({{ lacking }}, ', '))
{%- endmacro -%}

{%- macro _refuse_missing_fields(wanted, delivered, source_name) -%}
    {%- for field in wanted if execute and delivered and field not in delivered -%}
        {{ exceptions.raise_compiler_error(
            "the files of " ~ source_name ~ " hold no column '" ~ field ~ "'; declared are: " ~ delivered | join(', ') ~ "."
        ) }}
    {%- endfor -%}
    {%- for field in delivered if execute and delivered.count(field) > 1 -%}
        {{ exceptions.raise_compiler_error("the files of " ~ source_name ~ " are declared with two columns '" ~ field ~ "'.") }}
    {%- endfor -%}
{%- endmacro -%}
