with

records as (

    select *
    from {{ source('datastream_user1', 'customers') }}
    where source_table = 'customers' and entry = 'record'

),

parsed as (

    {{ datastream_records('records', 'datastream_user1', 'customers') }}

),

delivered as (

    {{ delivered_texts('parsed', 'customers') }}

),

typed as (

    {{ typed_columns('delivered', 'customers') }}

),

changes as (

    {{ change_contract('typed', 'datastream_user1', 'customers') }}

)

select * from changes
