with

records as (

    select *
    from {{ source('arcion_tpch', 'nation') }}
    where source_table = 'nation' and entry = 'record'

),

parsed as (

    {{ arcion_json_records('records', 'arcion_tpch', 'nation') }}

),

typed as (

    {{ typed_columns('parsed', 'nation', has_present=true, has_old_key=true) }}

),

parts as (

    {{ parts_of_changes('typed', 'nation') }}

),

placed as (

    {{ places_in_file('parts', 'nation', has_parts=true) }}

),

changes as (

    {{ change_contract('placed', 'arcion_tpch', 'nation', has_parts=true, has_place=true) }}

)

select * from changes
