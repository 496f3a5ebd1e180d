{%- macro is_view_of_base(relation) -%}
    {#- with `where` a test is of a subquery, which has no name -#}
    {%- set of_table = 'model.' ~ project_name ~ '.' ~ relation.identifier | default('') -%}
    {%- set node = graph.nodes.get(of_table) -%}
    {%- set layers = [of_table ~ '_merged', of_table ~ '_changes'] -%}
    {{ return(
        node is not none and layers[0] in node.depends_on.nodes and not node.depends_on.nodes | reject('in', layers) | list
    ) }}
{%- endmacro -%}
