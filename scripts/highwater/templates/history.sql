-- its current versions are compared with the view: depends_on {{ ref('<< entity >>') }}

with

changes as (

    {{ highwater.changes_of_touched_keys(ref('<< entity >>_changes'), '<< entity >>') }}

),

versions as (

    {{ highwater.row_versions('changes', ref('<< entity >>_changes'), '<< entity >>') }}

)

select * from versions
