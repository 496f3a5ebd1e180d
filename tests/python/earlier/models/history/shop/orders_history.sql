-- its current versions are compared with the view: depends_on {{ ref('orders') }}

with

changes as (

    {{ highwater.changes_of_touched_keys(ref('orders_changes'), 'orders') }}

),

versions as (

    {{ highwater.row_versions('changes', ref('orders_changes'), 'orders') }}

)

select * from versions
