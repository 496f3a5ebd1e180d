with

records as (

    {{ highwater.latest_export(source('exports_tpch', 'region'), 'region') }}

),

parsed as (

    {{ highwater.exported_records('records', 'exports_tpch') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'region') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'region') }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', 'exports_tpch', 'region') }}

)

select * from rows_of_export
