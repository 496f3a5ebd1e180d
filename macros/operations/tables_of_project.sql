{%- macro tables_of_project() -%}
    {%- set tables = [] -%}
    {%- for entity in highwater.names_of_tables() -%}
        {%- set sources = [] -%}
        {%- for id in highwater.entity_declaration(entity).depends_on.nodes if id in graph.nodes -%}
            {%- for feed, table in graph.nodes[id].get('sources', []) -%}
                {%- set declared = graph.sources['source.' ~ project_name ~ '.' ~ feed ~ '.' ~ table] -%}
                {%- set source_table = declared.config.get('meta', {}).get('source_table', table) -%}
                {%- do sources.append({'feed': feed, 'source_table': source_table, 'name': table}) -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- do tables.append({'entity': entity, 'sources': sources}) -%}
    {%- endfor -%}
    {{ return(tables) }}
{%- endmacro -%}
