{%- macro entity_declaration(entity) -%}
    {#- by its id: a loop over the graph would cost as many steps as the project has nodes -#}
    {%- set declaration = graph.nodes.get('model.' ~ project_name ~ '.' ~ entity ~ '_changes') -%}
    {%- if not declaration -%}
        {{ exceptions.raise_compiler_error(
            "there is no model " ~ entity ~ "_changes; it declares the columns and the key of '" ~ entity ~ "'."
        ) }}
    {%- endif -%}
    {{ return(declaration) }}
{%- endmacro -%}
