with

records as (

    select *
    from {{ source('arcion_tpch', 'nation') }}
    where source_table = 'nation' and entry = 'record'

),

parsed as (

    {{ highwater.arcion_json_records('records', 'arcion_tpch', 'nation') }}

),

parts as (

    {{ highwater.parts_of_changes('parsed', 'nation') }}

),

delivered as (

    {{ highwater.delivered_texts('parts', 'nation') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'nation', has_present=true) }}

),

placed as (

    {{ highwater.places_in_file('typed', 'nation', has_parts=true) }}

),

changes as (

    {{ highwater.change_contract('placed', 'arcion_tpch', 'nation', has_parts=true, has_place=true) }}

)

select * from changes
