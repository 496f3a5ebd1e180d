with

records as (

    {{ latest_export(source('exports_shop', 'items'), 'items') }}

),

parsed as (

    {{ exported_records('records', 'exports_shop') }}

),

delivered as (

    {{ delivered_texts('parsed', 'items') }}

),

typed as (

    {{ typed_columns('delivered', 'items') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_shop', 'items') }}

)

select * from rows_of_export
