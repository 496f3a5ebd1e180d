with

records as (

    select *
    from {{ source('debezium_erp', 'invoices') }}
    where source_table = 'invoices' and entry = 'record'

),

parsed as (

    {{ debezium_records('records', 'debezium_erp', 'invoices') }}

),

typed as (

    {{ typed_columns('parsed', 'invoices', has_present=true, has_old_key=true) }}

),

parts as (

    {{ parts_of_changes('typed', 'invoices') }}

),

placed as (

    {{ places_in_file('parts', 'invoices', has_parts=true) }}

),

changes as (

    {{ change_contract('placed', 'debezium_erp', 'invoices', has_parts=true, has_place=true) }}

)

select * from changes
