{%- macro tables_of_project() -%}
    {%- set tables = [] -%}
    {%- for entity in highwater._names_of_tables() -%}
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

{%- macro _names_of_tables() -%}
    {#- dbt knows no models while it parses one, so a project says them by a macro of its own. -#}
    {%- set names = [] -%}
    {%- for table in adapter.dispatch('logged_tables', 'highwater')() -%}
        {#- as `highwater add-table` of version 0.5 wrote them, each is a mapping -#}
        {%- do names.append(table.entity if table is mapping else table) -%}
    {%- endfor -%}
    {{ return(names) }}
{%- endmacro -%}

{%- macro depends_on_logs() -%}
    {#- They are of the project that has this package; dbt warns of each where the project is not named. -#}
    {%- for entity in highwater._names_of_tables() -%}
        {%- do ref(project_name, entity ~ '_changes') -%}
    {%- endfor -%}
{%- endmacro -%}
