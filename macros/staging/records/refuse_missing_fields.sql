{%- macro refuse_missing_fields(wanted, delivered, source_name) -%}
    {%- for field in wanted if execute and delivered and field not in delivered -%}
        {{ exceptions.raise_compiler_error(
            "the files of " ~ source_name ~ " hold no column '" ~ field ~ "'; declared are: " ~ delivered | join(', ') ~ "."
        ) }}
    {%- endfor -%}
    {%- for field in delivered if execute and delivered.count(field) > 1 -%}
        {{ exceptions.raise_compiler_error("the files of " ~ source_name ~ " are declared with two columns '" ~ field ~ "'.") }}
    {%- endfor -%}
{%- endmacro -%}
