{% test adds_up(model) %}

select
    *,
    read - applied - superseded - duplicate - rejected as lost
from {{ model }}
where read <> applied + superseded + duplicate + rejected

{% endtest %}
