{% test matches_export(model, export, key, columns=none, exclude_columns=[]) %}

{#- dbt has put `config.where` into the model already #}
{%- set is_staged = execute and export.identifier is defined
    and 'rejection_reason' in adapter.get_columns_in_relation(export) | map(attribute='name') -%}
{%- set comparison = highwater.comparison_with_export(
    model, export, key, columns, exclude_columns, config.get('where'), has_reasons=is_staged
) %}
{%- set verdicts = highwater.row_verdicts(model, comparison.readable, key, comparison.columns) %}
{%- set landed = highwater.has_landed(export) if is_staged else none %}
{{ highwater.failing_rows(verdicts, key, comparison.columns, comparison.sensitive, landed) }}

{% endtest %}
