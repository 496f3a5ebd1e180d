{% test has_inserts_only(model, key) %}

select
    struct(`{{ key | join('`, `') }}`) as key,
    count(*) as changes,
    collect_set(change_type) as change_types
from {{ model }}
-- a copy that is delivered again is no second insert
where verdict in ('applied', 'superseded')
group by `{{ key | join('`, `') }}`
having
    count(*) > 1
    or max(change_type) <> 'insert'

{% endtest %}
