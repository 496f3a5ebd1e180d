with

records as (

    select *
    from {{ source('debezium_erp', 'payments') }}
    where source_table = 'payments' and entry = 'record'

),

parsed as (

    {{ highwater.debezium_records('records', 'debezium_erp', 'payments') }}

),

parts as (

    {{ highwater.parts_of_changes('parsed', 'payments') }}

),

delivered as (

    {{ highwater.delivered_texts('parts', 'payments') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'payments', has_present=true) }}

),

placed as (

    {{ highwater.places_in_file('typed', 'payments', has_parts=true) }}

),

changes as (

    {{ highwater.change_contract('placed', 'debezium_erp', 'payments', has_parts=true, has_place=true) }}

)

select * from changes
