with

records as (

    select *
    from {{ source('debezium_erp', 'invoices') }}
    where source_table = 'invoices' and entry = 'record'

),

parsed as (

    {{ highwater.debezium_records('records', 'debezium_erp', 'invoices') }}

),

parts as (

    {{ highwater.parts_of_changes('parsed', 'invoices') }}

),

delivered as (

    {{ highwater.delivered_texts('parts', 'invoices') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'invoices', has_present=true) }}

),

placed as (

    {{ highwater.places_in_file('typed', 'invoices', has_parts=true) }}

),

changes as (

    {{ highwater.change_contract('placed', 'debezium_erp', 'invoices', has_parts=true, has_place=true) }}

)

select * from changes
