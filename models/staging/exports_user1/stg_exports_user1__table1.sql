with

records as (

    {{ highwater.latest_export(source('exports_user1', 'table1'), 'table1') }}

),

parsed as (

    {{ highwater.exported_records('records', 'exports_user1') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'table1') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'table1') }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', 'exports_user1', 'table1') }}

)

select * from rows_of_export
