with

records as (

    select *
    from {{ source('datastream_hr', 'employees') }}
    where source_table = 'employees' and entry = 'record'

),

parsed as (

    {{ datastream_file_records('records', 'datastream_hr', 'employees') }}

),

delivered as (

    {{ delivered_texts('parsed', 'employees') }}

),

typed as (

    {{ typed_columns('delivered', 'employees') }}

),

placed as (

    {{ places_in_file('typed', 'employees') }}

),

changes as (

    {{ change_contract('placed', 'datastream_hr', 'employees', has_place=true) }}

)

select * from changes
