with

records as (

    select *
    from {{ source('dms_stock', 'stock_levels') }}
    where source_table = 'stock_levels' and entry = 'record'

),

parsed as (

    {{ highwater.dms_records('records', 'dms_stock', 'stock_levels', 'stock_levels') }}

),

parts as (

    {{ highwater.parts_of_changes('parsed', 'stock_levels') }}

),

delivered as (

    {{ highwater.delivered_texts('parts', 'stock_levels') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'stock_levels') }}

),

placed as (

    {{ highwater.places_in_file('typed', 'stock_levels', has_parts=true) }}

),

changes as (

    {{ highwater.change_contract('placed', 'dms_stock', 'stock_levels', has_parts=true, has_place=true) }}

)

select * from changes
