with

records as (

    select *
    from {{ source('arcion_files', 'suppliers') }}
    where source_table = 'suppliers' and entry = 'record'

),

parsed as (

    {{ arcion_csv_records('records', 'arcion_files', 'suppliers', 'suppliers') }}

),

typed as (

    {{ typed_columns('parsed', 'suppliers', has_present=true, has_old_key=true) }}

),

parts as (

    {{ parts_of_changes('typed', 'suppliers') }}

),

placed as (

    {{ places_in_file('parts', 'suppliers', has_parts=true) }}

),

changes as (

    {{ change_contract('placed', 'arcion_files', 'suppliers', has_parts=true, has_place=true) }}

)

select * from changes
