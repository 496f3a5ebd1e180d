{%- macro handed_on() -%}
    {#- What the SQL of a model has found out, for the statement that writes it: dbt itself hands on the SQL alone. -#}
    {%- set nodes = graph.setdefault('highwater ' ~ invocation_id, {}) if execute else {} -%}
    {{ return(nodes.setdefault(model.unique_id, {})) }}
{%- endmacro -%}
