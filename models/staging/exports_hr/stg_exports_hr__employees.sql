with

records as (

    {{ highwater.latest_export(source('exports_hr', 'employees'), 'employees') }}

),

parsed as (

    {{ highwater.exported_records('records', 'exports_hr') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'employees') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'employees', binary_encoding='hex') }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', 'exports_hr', 'employees') }}

)

select * from rows_of_export
