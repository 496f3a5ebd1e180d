{% test matches_export(model, export, key, columns=none, exclude_columns=[]) %}

{%- set columns = columns or highwater._columns_of_model(model, key) %}
{%- set names = key + columns | reject('in', key + exclude_columns) | list %}
{%- set truth = highwater._with_names_of_the_source(export, highwater._model_of(model) if execute else none) %}
{%- set compared = highwater.comparable_columns(model, truth, names, highwater._declared_rules(model)) %}
{#- dbt has put `config.where` into the model already #}
{%- set is_staged = execute and export.identifier is defined
    and 'rejection_reason' in adapter.get_columns_in_relation(export) | map(attribute='name') -%}
{%- set readable = highwater._readable_rows(truth, config.get('where'), is_staged) %}
{%- set verdicts = highwater.row_verdicts(model, readable, key, compared) %}
{{ highwater._failing_rows(verdicts, key, compared, highwater._sensitive_columns(model, names)) }}

{% endtest %}
