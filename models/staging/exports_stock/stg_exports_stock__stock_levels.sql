with

records as (

    {{ latest_export(source('exports_stock', 'stock_levels'), 'stock_levels') }}

),

parsed as (

    {{ exported_records('records', 'exports_stock') }}

),

delivered as (

    {{ delivered_texts('parsed', 'stock_levels') }}

),

typed as (

    {{ typed_columns('delivered', 'stock_levels', binary_encoding='hex') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_stock', 'stock_levels') }}

)

select * from rows_of_export
