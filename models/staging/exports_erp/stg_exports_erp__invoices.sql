with

records as (

    {{ latest_export(source('exports_erp', 'invoices'), 'invoices') }}

),

parsed as (

    {{ exported_records('records', 'exports_erp') }}

),

typed as (

    {{ typed_columns('parsed', 'invoices', binary_encoding='hex') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_erp', 'invoices') }}

)

select * from rows_of_export
