{% macro spark__create_columns(relation, columns) %}
    {#- A snapshot by several columns makes them of its own names; they would be ambiguous in its next run. -#}
    {%- set added = [] -%}
    {%- for column in columns if not modules.re.fullmatch('dbt_unique_key_[0-9]+', column.name) -%}
        {%- do added.append(column) -%}
    {%- endfor -%}
    {{ return(dbt.spark__create_columns(relation, added)) }}
{% endmacro %}
