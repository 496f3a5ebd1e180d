with

records as (

    select *
    from {{ source('datastream_crm', 'contacts') }}
    where source_table = 'contacts' and entry = 'record'

),

parsed as (

    {{ highwater.datastream_file_records('records', 'datastream_crm', 'contacts') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'contacts') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'contacts', binary_encoding='hex') }}

),

placed as (

    {{ highwater.places_in_file('typed', 'contacts') }}

),

changes as (

    {{ highwater.change_contract('placed', 'datastream_crm', 'contacts', has_place=true) }}

)

select * from changes
