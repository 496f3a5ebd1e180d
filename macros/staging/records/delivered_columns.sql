{%- macro delivered_columns(feed, table) -%}
    {%- if not execute or graph.sources is not defined -%}
        {{ return([]) }}
    {%- endif -%}
    {%- for source in graph.sources.values() if source.source_name == feed and source.name == table -%}
        {%- set columns = source.config.get('meta', {}).get('columns') or source.meta.get('columns') -%}
        {%- if columns -%}
            {{ return(columns) }}
        {%- endif -%}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        "the source " ~ feed ~ "." ~ table ~ " does not say in which order its files hold the columns. Add it to its "
        ~ "declaration, for example `config: {meta: {columns: [id, name]}}`."
    ) }}
{%- endmacro -%}
