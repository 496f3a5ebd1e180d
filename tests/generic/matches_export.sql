{% test matches_export(model, export, key, columns=none) %}

{{ row_verdicts(model, export, key, columns or _compared_columns(model, key)) }}
where verdict <> 'equal'

{% endtest %}
