with

records as (

    select *
    from {{ source('tungsten_shop', 'orders') }}
    where source_table = 'orders' and entry = 'record'

),

parsed as (

    {{ highwater.tungsten_records('records', 'tungsten_shop', 'orders', 'orders') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'orders') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'orders', binary_encoding='hex') }}

),

placed as (

    {{ highwater.places_in_file('typed', 'orders', has_row_number=true) }}

),

changes as (

    {{ highwater.change_contract('placed', 'tungsten_shop', 'orders', has_place=true) }}

)

select * from changes
