with

changes as (

    {{ highwater.changes_to_take_in(ref('invoices_changes'), 'invoices') }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', 'invoices', this) }}

)

select * from latest
