{%- macro relation_beside(model, name) -%}
    {%- if not execute -%}
        {{ return(model) }}
    {%- endif -%}
    {%- set relation = adapter.get_relation(model.database, model.schema, name) -%}
    {%- if not relation -%}
        {{ exceptions.raise_compiler_error(
            "a test of " ~ model ~ ": there is no " ~ name ~ " beside it. Build it first, or correct its name."
        ) }}
    {%- endif -%}
    {{ return(relation) }}
{%- endmacro -%}
