with

records as (

    select *
    from {{ source('tungsten_shop', 'items') }}
    where source_table = 'items' and entry = 'record'

),

parsed as (

    {{ tungsten_records('records', 'tungsten_shop', 'items', 'items') }}

),

delivered as (

    {{ delivered_texts('parsed', 'items') }}

),

typed as (

    {{ typed_columns('delivered', 'items', binary_encoding='hex') }}

),

placed as (

    {{ places_in_file('typed', 'items', has_row_number=true) }}

),

changes as (

    {{ change_contract('placed', 'tungsten_shop', 'items', has_place=true) }}

)

select * from changes
