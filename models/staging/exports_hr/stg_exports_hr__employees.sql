with

records as (

    {{ latest_export(source('exports_hr', 'employees'), 'employees') }}

),

parsed as (

    {{ exported_records('records', 'exports_hr') }}

),

typed as (

    {{ typed_columns('parsed', 'employees', binary_encoding='hex') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_hr', 'employees') }}

)

select * from rows_of_export
