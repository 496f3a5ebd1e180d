with

current_rows as (

    {{ highwater.current_rows(ref('contacts_merged'), 'contacts') }}

)

select * from current_rows
