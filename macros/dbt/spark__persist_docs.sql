{% macro spark__persist_docs(relation, model, for_relation, for_columns) %}
    {%- do dbt.spark__persist_docs(relation, model, for_relation, for_columns) -%}
    {%- if model.resource_type == 'model' and model.config.materialized == 'incremental' -%}
        {%- do highwater.answer_with_facts(relation, model) -%}
    {%- endif -%}
{% endmacro %}
