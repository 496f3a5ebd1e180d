with

records as (

    {{ latest_export(source('exports_tpch', 'region'), 'region') }}

),

parsed as (

    {{ exported_records('records', 'exports_tpch') }}

),

delivered as (

    {{ delivered_texts('parsed', 'region') }}

),

typed as (

    {{ typed_columns('delivered', 'region') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_tpch', 'region') }}

)

select * from rows_of_export
