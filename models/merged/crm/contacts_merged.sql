with

changes as (

    {{ changes_to_take_in(ref('contacts_changes'), 'contacts') }}

),

latest as (

    {{ latest_change_per_key('changes', 'contacts', this) }}

)

select * from latest
