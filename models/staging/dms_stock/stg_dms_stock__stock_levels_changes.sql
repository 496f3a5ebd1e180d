with

records as (

    select *
    from {{ source('dms_stock', 'stock_levels') }}
    where source_table = 'stock_levels' and entry = 'record'

),

parsed as (

    {{ dms_records('records', 'dms_stock', 'stock_levels', 'stock_levels') }}

),

typed as (

    {{ typed_columns('parsed', 'stock_levels', has_old_key=true) }}

),

parts as (

    {{ parts_of_changes('typed', 'stock_levels') }}

),

placed as (

    {{ places_in_file('parts', 'stock_levels', has_parts=true) }}

),

changes as (

    {{ change_contract('placed', 'dms_stock', 'stock_levels', has_parts=true, has_place=true) }}

)

select * from changes
