with

records as (

    {{ latest_export(source('exports_user1', 'table1'), 'table1') }}

),

parsed as (

    {{ exported_records('records', 'exports_user1') }}

),

delivered as (

    {{ delivered_texts('parsed', 'table1') }}

),

typed as (

    {{ typed_columns('delivered', 'table1') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_user1', 'table1') }}

)

select * from rows_of_export
