with

records as (

    {{ latest_export(source('exports_erp', 'payments'), 'payments') }}

),

parsed as (

    {{ exported_records('records', 'exports_erp') }}

),

delivered as (

    {{ delivered_texts('parsed', 'payments') }}

),

typed as (

    {{ typed_columns('delivered', 'payments') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_erp', 'payments') }}

)

select * from rows_of_export
