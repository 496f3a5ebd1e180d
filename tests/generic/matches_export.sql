{% test matches_export(model, export, key, columns=none, exclude_columns=[]) %}

{%- set names = key + (columns or _columns_of_model(model, key)) | reject('in', key + exclude_columns) | list %}
{%- set truth = _with_names_of_the_source(export, _model_of(model) if execute else none) %}
{%- set compared = comparable_columns(model, truth, names, _declared_rules(model)) %}
{#- dbt has put `config.where` into the model already #}
{%- set is_staged = execute and export.identifier is defined
    and 'rejection_reason' in adapter.get_columns_in_relation(export) | map(attribute='name') -%}
{%- set readable = _readable_rows(truth, config.get('where'), is_staged) %}
{%- set verdicts = row_verdicts(model, readable, key, compared) %}
{{ _failing_rows(verdicts, key, compared, _sensitive_columns(model, names)) }}

{% endtest %}
