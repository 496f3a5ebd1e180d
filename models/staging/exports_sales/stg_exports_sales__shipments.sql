with

records as (

    {{ latest_export(source('exports_sales', 'shipments'), 'shipments') }}

),

parsed as (

    {{ exported_records('records', 'exports_sales') }}

),

delivered as (

    {{ delivered_texts('parsed', 'shipments') }}

),

typed as (

    {{ typed_columns('delivered', 'shipments') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_sales', 'shipments') }}

)

select * from rows_of_export
