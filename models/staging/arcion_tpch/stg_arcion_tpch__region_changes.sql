with

records as (

    select *
    from {{ source('arcion_tpch', 'region') }}
    where source_table = 'region' and entry = 'record'

),

parsed as (

    {{ highwater.arcion_json_records('records', 'arcion_tpch', 'region') }}

),

parts as (

    {{ highwater.parts_of_changes('parsed', 'region') }}

),

delivered as (

    {{ highwater.delivered_texts('parts', 'region') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'region', has_present=true) }}

),

placed as (

    {{ highwater.places_in_file('typed', 'region', has_parts=true) }}

),

changes as (

    {{ highwater.change_contract('placed', 'arcion_tpch', 'region', has_parts=true, has_place=true) }}

)

select * from changes
