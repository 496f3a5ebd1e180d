with

records as (

    {{ highwater.latest_export(source('exports_files', 'suppliers'), 'suppliers') }}

),

parsed as (

    {{ highwater.exported_records('records', 'exports_files') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'suppliers') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'suppliers') }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', 'exports_files', 'suppliers') }}

)

select * from rows_of_export
