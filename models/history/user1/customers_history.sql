-- its current versions are compared with the view: depends_on {{ ref('customers') }}

with

changes as (

    {{ highwater.changes_of_touched_keys(ref('customers_changes'), 'customers') }}

),

versions as (

    {{ highwater.row_versions('changes', ref('customers_changes'), 'customers', ignored=['updated_at']) }}

)

select * from versions
