with

records as (

    select *
    from {{ source('dms_sales', 'shipments') }}
    where source_table = 'shipments' and entry = 'record'

),

parsed as (

    {{ highwater.dms_records('records', 'dms_sales', 'shipments', 'shipments') }}

),

parts as (

    {{ highwater.parts_of_changes('parsed', 'shipments') }}

),

delivered as (

    {{ highwater.delivered_texts('parts', 'shipments') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'shipments') }}

),

placed as (

    {{ highwater.places_in_file('typed', 'shipments', has_parts=true) }}

),

changes as (

    {{ highwater.change_contract('placed', 'dms_sales', 'shipments', has_parts=true, has_place=true) }}

)

select * from changes
