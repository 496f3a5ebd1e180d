{%- macro built_model(model_name) -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.name == model_name -%}
        {{ return(node) }}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error("there is no model " ~ model_name ~ ".") }}
{%- endmacro -%}
