with

records as (

    select *
    from {{ source('tungsten_shop', 'items') }}
    where source_table = 'items' and entry = 'record'

),

parsed as (

    {{ highwater.tungsten_records('records', 'tungsten_shop', 'items', 'items') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'items') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'items', binary_encoding='hex') }}

),

placed as (

    {{ highwater.places_in_file('typed', 'items', has_row_number=true) }}

),

changes as (

    {{ highwater.change_contract('placed', 'tungsten_shop', 'items', has_place=true) }}

)

select * from changes
