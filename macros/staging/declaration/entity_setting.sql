{%- macro entity_setting(entity, setting, default=none) -%}
    {#- At parse time and in unit tests there is no graph; unit tests test the defaults. -#}
    {%- if not execute or graph.nodes is not defined -%}
        {{ return(default) }}
    {%- endif -%}
    {{ return(highwater.entity_declaration(entity).config.get('meta', {}).get(setting, default)) }}
{%- endmacro -%}
