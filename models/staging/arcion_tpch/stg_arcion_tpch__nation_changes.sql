with

records as (

    select *
    from {{ source('arcion_tpch', 'nation') }}
    where source_table = 'nation' and entry = 'record'

),

parsed as (

    {{ arcion_json_records('records', 'arcion_tpch', 'nation') }}

),

parts as (

    {{ parts_of_changes('parsed', 'nation') }}

),

delivered as (

    {{ delivered_texts('parts', 'nation') }}

),

typed as (

    {{ typed_columns('delivered', 'nation', has_present=true) }}

),

placed as (

    {{ places_in_file('typed', 'nation', has_parts=true) }}

),

changes as (

    {{ change_contract('placed', 'arcion_tpch', 'nation', has_parts=true, has_place=true) }}

)

select * from changes
