{% macro spark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) %}
    {%- if config.get('meta', {}).get('merged') -%}
        {{ highwater.apply_changes(target, source, target.identifier.removesuffix('_merged')) }}
    {%- elif config.get('meta', {}).get('history') -%}
        {{ highwater.apply_versions(target, source, target.identifier.removesuffix('_history')) }}
    {%- else -%}
        {{ dbt.spark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) }}
    {%- endif -%}
{% endmacro %}
