{%- macro last_log_batch_shown(entity) -%}
    {%- if not execute or graph.nodes is not defined -%}
        {{ return(none) }}
    {%- endif -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.name == entity ~ '_merged' -%}
        {#- the merged table of a publish group reads its publications -#}
        {%- for parent in node.depends_on.nodes if parent.endswith('_publications') -%}
            {%- set published = highwater.published_log_batch(highwater.built_relation(parent.split('.')[-1]), entity) -%}
            {#- before its first publication a table shows what it has -#}
            {%- set merged = adapter.get_relation(none, node.schema, node.alias) -%}
            {{ return(published or (highwater.newest_log_batch(merged) if merged else 0)) }}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(none) }}
{%- endmacro -%}
