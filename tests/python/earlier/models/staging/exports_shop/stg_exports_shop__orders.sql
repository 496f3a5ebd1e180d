with

records as (

    {{ highwater.latest_export(source('exports_shop', 'orders'), 'orders') }}

),

parsed as (

    {{ highwater.exported_records('records', 'exports_shop', 'orders') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'orders') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'orders', binary_encoding='hex') }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', 'exports_shop', 'orders') }}

)

select * from rows_of_export
