{% macro spark__create_view_as(relation, sql) %}
    {%- set there = load_cached_relation(relation) -%}
    {%- if there and there.is_view and not config.persist_column_docs() -%}
        {#- Spark replaces a view by dropping it first, and whoever asks in between does not find it -#}
        alter view {{ relation }} as
        {%- if config.get('contract').enforced %}
        {{ get_assert_columns_equivalent(sql) }}
        {%- endif %}
        {{ sql }}
    {%- else -%}
        {{ dbt.spark__create_view_as(relation, sql) }}
    {%- endif -%}
{% endmacro %}
