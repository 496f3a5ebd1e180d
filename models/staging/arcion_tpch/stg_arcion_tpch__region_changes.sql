with

records as (

    select *
    from {{ source('arcion_tpch', 'region') }}
    where source_table = 'region' and entry = 'record'

),

parsed as (

    {{ arcion_json_records('records', 'arcion_tpch', 'region') }}

),

parts as (

    {{ parts_of_changes('parsed', 'region') }}

),

delivered as (

    {{ delivered_texts('parts', 'region') }}

),

typed as (

    {{ typed_columns('delivered', 'region', has_present=true) }}

),

placed as (

    {{ places_in_file('typed', 'region', has_parts=true) }}

),

changes as (

    {{ change_contract('placed', 'arcion_tpch', 'region', has_parts=true, has_place=true) }}

)

select * from changes
