with

records as (

    {{ highwater.latest_export(source('exports_erp', 'invoices'), 'invoices') }}

),

parsed as (

    {{ highwater.exported_records('records', 'exports_erp') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'invoices') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'invoices', binary_encoding='hex') }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', 'exports_erp', 'invoices') }}

)

select * from rows_of_export
