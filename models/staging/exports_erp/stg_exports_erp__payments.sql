with

records as (

    {{ latest_export(source('exports_erp', 'payments'), 'payments') }}

),

parsed as (

    {{ exported_records('records', 'exports_erp') }}

),

typed as (

    {{ typed_columns('parsed', 'payments') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_erp', 'payments') }}

)

select * from rows_of_export
