with

records as (

    {{ highwater.latest_export(source('exports_tpch', 'nation'), 'nation') }}

),

parsed as (

    {{ highwater.exported_records('records', 'exports_tpch') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'nation') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'nation') }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', 'exports_tpch', 'nation') }}

)

select * from rows_of_export
