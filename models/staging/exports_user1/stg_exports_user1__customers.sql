with

records as (

    {{ latest_export(source('exports_user1', 'customers'), 'customers') }}

),

parsed as (

    {{ exported_records('records', 'exports_user1') }}

),

delivered as (

    {{ delivered_texts('parsed', 'customers') }}

),

typed as (

    {{ typed_columns('delivered', 'customers', binary_encoding='hex') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_user1', 'customers') }}

)

select * from rows_of_export
