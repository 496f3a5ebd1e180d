{%- macro feed_setting(feed, setting, default=none) -%}
    {#- At parse time and in unit tests there is no graph; unit tests test the defaults. -#}
    {%- if not execute or graph.sources is not defined -%}
        {{ return(default) }}
    {%- endif -%}
    {%- for source in graph.sources.values() if source.source_name == feed -%}
        {{ return(source.source_meta.get('feed', {}).get(setting, default)) }}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error("there is no source '" ~ feed ~ "' with a declared feed.") }}
{%- endmacro -%}
