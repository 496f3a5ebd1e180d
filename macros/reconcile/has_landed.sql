{%- macro has_landed(export) -%}
    {%- set node = graph.nodes.get('model.' ~ project_name ~ '.' ~ export.identifier) -%}
    {%- for source in graph.sources.values() if node and node.sources and [source.source_name, source.name] == node.sources[0] -%}
exists (select 1 from {{ source.relation_name }} where entry = 'file' and source_table = {{ highwater.sql_text(source.config.get('meta', {}).get('source_table', source.name)) }})
    {%- else -%}
true
    {%- endfor -%}
{%- endmacro -%}
