with

current_rows as (

    {{ current_rows(ref('contacts_merged'), 'contacts') }}

)

select * from current_rows
