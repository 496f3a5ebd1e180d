with

records as (

    {{ highwater.latest_export(source('exports_erp', 'payments'), 'payments') }}

),

parsed as (

    {{ highwater.exported_records('records', 'exports_erp') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'payments') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'payments') }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', 'exports_erp', 'payments') }}

)

select * from rows_of_export
