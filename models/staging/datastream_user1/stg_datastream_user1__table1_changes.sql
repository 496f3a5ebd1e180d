with

records as (

    select *
    from {{ source('datastream_user1', 'table1') }}
    where source_table = 'table1' and entry = 'record'

),

parsed as (

    {{ highwater.datastream_records('records', 'datastream_user1', 'table1') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'table1') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'table1') }}

),

changes as (

    {{ highwater.change_contract('typed', 'datastream_user1', 'table1') }}

)

select * from changes
