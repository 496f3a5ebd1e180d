with

records as (

    {{ highwater.latest_export(source('exports_user1', 'customers'), 'customers') }}

),

parsed as (

    {{ highwater.exported_records('records', 'exports_user1') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'customers') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'customers', binary_encoding='hex') }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', 'exports_user1', 'customers') }}

)

select * from rows_of_export
