{%- macro built_relation(model_name) -%}
    {%- set node = highwater.built_model(model_name) -%}
    {{ return(api.Relation.create(schema=node.schema, identifier=node.alias)) }}
{%- endmacro -%}
