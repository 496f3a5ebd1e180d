with

records as (

    {{ latest_export(source('exports_shop', 'orders'), 'orders') }}

),

parsed as (

    {{ exported_records('records', 'exports_shop') }}

),

delivered as (

    {{ delivered_texts('parsed', 'orders') }}

),

typed as (

    {{ typed_columns('delivered', 'orders') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_shop', 'orders') }}

)

select * from rows_of_export
