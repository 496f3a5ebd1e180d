-- its current versions are compared with the view: depends_on {{ ref('<< entity >>') }}

with

changes as (

    {{ changes_of_touched_keys(ref('<< entity >>_changes'), '<< entity >>') }}

),

versions as (

    {{ row_versions('changes', ref('<< entity >>_changes'), '<< entity >>') }}

)

select * from versions
