with

records as (

    {{ latest_export(source('exports_hr', 'employees'), 'employees') }}

),

parsed as (

    {{ exported_records('records', 'exports_hr') }}

),

delivered as (

    {{ delivered_texts('parsed', 'employees') }}

),

typed as (

    {{ typed_columns('delivered', 'employees', binary_encoding='hex') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_hr', 'employees') }}

)

select * from rows_of_export
