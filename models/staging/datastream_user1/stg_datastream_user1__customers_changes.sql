with

records as (

    select *
    from {{ source('datastream_user1', 'customers') }}
    where source_table = 'customers' and entry = 'record'

),

parsed as (

    {{ highwater.datastream_records('records', 'datastream_user1', 'customers') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'customers') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'customers') }}

),

changes as (

    {{ highwater.change_contract('typed', 'datastream_user1', 'customers') }}

)

select * from changes
