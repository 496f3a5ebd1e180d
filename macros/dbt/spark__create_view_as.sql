{% macro spark__create_view_as(relation, sql) %}
    {%- set there = load_cached_relation(relation) -%}
    {%- if there and there.is_view and not config.persist_column_docs() -%}
        {%- if highwater._is_as_it_was(there, sql) -%}
            {{ return("select 'the view is as it was'") }}
        {%- endif -%}
        {#- Spark replaces a view by dropping it first, and whoever queries it in between does not find it -#}
        alter view {{ relation }} as
        {%- if config.get('contract').enforced %}
        {{ get_assert_columns_equivalent(sql) }}
        {%- endif %}
        {{ sql }}
    {%- else -%}
        {{ dbt.spark__create_view_as(relation, sql) }}
    {%- endif -%}
{% endmacro %}

{%- macro _is_as_it_was(there, sql) -%}
    {#- Staging and views of a base alone: there the SQL says all columns, and their types are declared. A view keeps Spark's
        settings of when it was written, so they must be the same too, which `highwater build` knows. dbt has queried the
        text of every view already. -#}
    {{ return(
        (model.fqn[1] == 'staging' or highwater.is_view_of_base(this)) and env_var('HIGHWATER_PROJECT', 'changed') == 'as it was'
        and not flags.FULL_REFRESH and not config.get('contract').enforced
        and ('View Text: ' ~ sql | trim ~ '\nView Original Text: ') in (there.information or '')
    ) }}
{%- endmacro -%}
