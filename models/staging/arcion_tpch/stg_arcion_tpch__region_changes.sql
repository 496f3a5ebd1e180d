with

records as (

    select *
    from {{ source('arcion_tpch', 'region') }}
    where source_table = 'region' and entry = 'record'

),

parsed as (

    {{ arcion_json_records('records', 'arcion_tpch', 'region') }}

),

typed as (

    {{ typed_columns('parsed', 'region', has_present=true, has_old_key=true) }}

),

parts as (

    {{ parts_of_changes('typed', 'region') }}

),

placed as (

    {{ places_in_file('parts', 'region', has_parts=true) }}

),

changes as (

    {{ change_contract('placed', 'arcion_tpch', 'region', has_parts=true, has_place=true) }}

)

select * from changes
