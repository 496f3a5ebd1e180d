{% test has_current_rows_of(model, view, valid_to='valid_to') %}

{%- set current = highwater.relation_beside(model, view) -%}
{%- set found = adapter.get_columns_in_relation(current) | map(attribute='name') | list if execute -%}
{%- set columns = found or ['at parse time'] -%}
{%- set names = highwater.names_in_history(columns) if valid_to == 'valid_to' else columns -%}

with

open_versions as (

    select `{{ names | join('`, `') }}`
    from {{ model }}
    where `{{ valid_to }}` is null

),

current_rows as (

    select `{{ columns | join('`, `') }}`
    from {{ current }}

)

select
    'is open and not current' as problem,
    struct(surplus.*) as found
from (
    select * from open_versions
    except all
    select * from current_rows
) as surplus

union all

select
    'is current and not open' as problem,
    struct(missing.*) as found
from (
    select * from current_rows
    except all
    select * from open_versions
) as missing

{% endtest %}
