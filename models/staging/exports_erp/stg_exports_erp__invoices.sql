with

records as (

    {{ latest_export(source('exports_erp', 'invoices'), 'invoices') }}

),

parsed as (

    {{ exported_records('records', 'exports_erp') }}

),

delivered as (

    {{ delivered_texts('parsed', 'invoices') }}

),

typed as (

    {{ typed_columns('delivered', 'invoices', binary_encoding='hex') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_erp', 'invoices') }}

)

select * from rows_of_export
