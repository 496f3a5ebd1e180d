with

records as (

    {{ highwater.latest_export(source('exports_stock', 'stock_levels'), 'stock_levels') }}

),

parsed as (

    {{ highwater.exported_records('records', 'exports_stock') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'stock_levels') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'stock_levels', binary_encoding='hex') }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', 'exports_stock', 'stock_levels') }}

)

select * from rows_of_export
