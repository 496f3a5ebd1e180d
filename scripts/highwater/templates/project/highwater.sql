{#- dbt looks this macro up in the project alone, and the package takes its place. -#}
{% macro get_insert_into_sql(source_relation, target_relation) %}
    {{ return(highwater.get_insert_into_sql(source_relation, target_relation)) }}
{% endmacro %}
