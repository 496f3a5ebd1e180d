with

records as (

    select *
    from {{ source('debezium_erp', 'payments') }}
    where source_table = 'payments' and entry = 'record'

),

parsed as (

    {{ debezium_records('records', 'debezium_erp', 'payments') }}

),

typed as (

    {{ typed_columns('parsed', 'payments', has_present=true, has_old_key=true) }}

),

parts as (

    {{ parts_of_changes('typed', 'payments') }}

),

placed as (

    {{ places_in_file('parts', 'payments', has_parts=true) }}

),

changes as (

    {{ change_contract('placed', 'debezium_erp', 'payments', has_parts=true, has_place=true) }}

)

select * from changes
