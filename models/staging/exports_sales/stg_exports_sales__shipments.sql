with

records as (

    {{ highwater.latest_export(source('exports_sales', 'shipments'), 'shipments') }}

),

parsed as (

    {{ highwater.exported_records('records', 'exports_sales') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'shipments') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'shipments') }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', 'exports_sales', 'shipments') }}

)

select * from rows_of_export
