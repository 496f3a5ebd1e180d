{%- macro source_of_model(entity) -%}
    {#- At parse time dbt does not know yet what the model reads, and nothing depends on it; unit tests have no graph. -#}
    {%- set read = model.sources[0] if execute and model.sources else ['', entity] -%}
    {%- set source = {'feed': read[0], 'table': read[1], 'name_in_raw': read[1]} -%}
    {%- for node in (graph.sources or {}).values() if node.source_name == source.feed and node.name == source.table -%}
        {%- do source.update({'name_in_raw': node.config.get('meta', {}).get('source_table', node.name)}) -%}
    {%- endfor -%}
    {{ return(source) }}
{%- endmacro -%}
