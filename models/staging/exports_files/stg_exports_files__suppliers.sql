with

records as (

    {{ latest_export(source('exports_files', 'suppliers'), 'suppliers') }}

),

parsed as (

    {{ exported_records('records', 'exports_files') }}

),

delivered as (

    {{ delivered_texts('parsed', 'suppliers') }}

),

typed as (

    {{ typed_columns('delivered', 'suppliers') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_files', 'suppliers') }}

)

select * from rows_of_export
