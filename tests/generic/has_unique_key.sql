{% test has_unique_key(model, key) %}

select
    struct(`{{ key | join('`, `') }}`) as key,
    count(*) as row_count
from {{ model }}
group by `{{ key | join('`, `') }}`
having
    count(*) > 1
    {%- for column in key %}
    or `{{ column }}` is null
    {%- endfor %}

{% endtest %}
