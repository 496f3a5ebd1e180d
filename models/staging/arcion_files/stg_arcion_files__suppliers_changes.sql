with

records as (

    select *
    from {{ source('arcion_files', 'suppliers') }}
    where source_table = 'suppliers' and entry = 'record'

),

parsed as (

    {{ highwater.arcion_csv_records('records', 'arcion_files', 'suppliers', 'suppliers') }}

),

parts as (

    {{ highwater.parts_of_changes('parsed', 'suppliers') }}

),

delivered as (

    {{ highwater.delivered_texts('parts', 'suppliers') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'suppliers', has_present=true) }}

),

placed as (

    {{ highwater.places_in_file('typed', 'suppliers', has_parts=true) }}

),

changes as (

    {{ highwater.change_contract('placed', 'arcion_files', 'suppliers', has_parts=true, has_place=true) }}

)

select * from changes
