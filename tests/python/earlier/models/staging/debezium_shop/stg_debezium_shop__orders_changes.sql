with

records as (

    select *
    from {{ source('debezium_shop', 'orders') }}
    where source_table = 'orders' and entry = 'record'

),

parsed as (

    {{ highwater.debezium_records('records', 'debezium_shop', 'orders') }}

),

parts as (

    {{ highwater.parts_of_changes('parsed', 'orders') }}

),

delivered as (

    {{ highwater.delivered_texts('parts', 'orders') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'orders', has_present=true) }}

),

placed as (

    {{ highwater.places_in_file('typed', 'orders', has_parts=true) }}

),

changes as (

    {{ highwater.change_contract('placed', 'debezium_shop', 'orders', has_parts=true, has_place=true) }}

)

select * from changes
