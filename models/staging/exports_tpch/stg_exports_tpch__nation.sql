with

records as (

    {{ latest_export(source('exports_tpch', 'nation'), 'nation') }}

),

parsed as (

    {{ exported_records('records', 'exports_tpch') }}

),

delivered as (

    {{ delivered_texts('parsed', 'nation') }}

),

typed as (

    {{ typed_columns('delivered', 'nation') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_tpch', 'nation') }}

)

select * from rows_of_export
