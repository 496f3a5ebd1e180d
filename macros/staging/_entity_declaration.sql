{%- macro _entity_declaration(entity) -%}
    {%- for node in graph.nodes.values()
        if node.resource_type == 'model' and node.name == entity ~ '_changes' -%}
        {{ return(node) }}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        "there is no model " ~ entity ~ "_changes; it declares the columns and the key of '" ~ entity ~ "'."
    ) }}
{%- endmacro -%}
