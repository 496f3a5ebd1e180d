with

records as (

    select *
    from {{ source('debezium_erp', 'payments') }}
    where source_table = 'payments' and entry = 'record'

),

parsed as (

    {{ debezium_records('records', 'debezium_erp', 'payments') }}

),

parts as (

    {{ parts_of_changes('parsed', 'payments') }}

),

delivered as (

    {{ delivered_texts('parts', 'payments') }}

),

typed as (

    {{ typed_columns('delivered', 'payments', has_present=true) }}

),

placed as (

    {{ places_in_file('typed', 'payments', has_parts=true) }}

),

changes as (

    {{ change_contract('placed', 'debezium_erp', 'payments', has_parts=true, has_place=true) }}

)

select * from changes
