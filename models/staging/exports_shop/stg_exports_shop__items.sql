with

records as (

    {{ highwater.latest_export(source('exports_shop', 'items'), 'items') }}

),

parsed as (

    {{ highwater.exported_records('records', 'exports_shop') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'items') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'items') }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', 'exports_shop', 'items') }}

)

select * from rows_of_export
