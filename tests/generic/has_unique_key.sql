{% test has_unique_key(model, key) %}

{#- has_agreeing_layers of its base looks at what a build has written -#}
{%- set is_known = highwater.is_view_of_base(model) and highwater.facts_of_table(model.identifier)
    if execute and not var('audit', false) %}

select
    struct(`{{ key | join('`, `') }}`) as key,
    count(*) as row_count
from {{ model }}
{%- if is_known %}
where false
{%- endif %}
group by `{{ key | join('`, `') }}`
having
    count(*) > 1
    {%- for column in key %}
    or `{{ column }}` is null
    {%- endfor %}

{% endtest %}
