with

changes as (

    {{ highwater.changes_to_take_in(ref('contacts_changes'), 'contacts') }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', 'contacts', this) }}

)

select * from latest
