with

records as (

    select *
    from {{ source('datastream_hr', 'employees') }}
    where source_table = 'employees' and entry = 'record'

),

parsed as (

    {{ highwater.datastream_file_records('records', 'datastream_hr', 'employees') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'employees') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'employees') }}

),

placed as (

    {{ highwater.places_in_file('typed', 'employees') }}

),

changes as (

    {{ highwater.change_contract('placed', 'datastream_hr', 'employees', has_place=true) }}

)

select * from changes
