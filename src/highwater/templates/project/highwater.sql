{#- dbt looks for this macro in the project alone, so the project hands it on to the package. -#}
{% macro get_insert_into_sql(source_relation, target_relation) %}
    {{ return(highwater.get_insert_into_sql(source_relation, target_relation)) }}
{% endmacro %}
