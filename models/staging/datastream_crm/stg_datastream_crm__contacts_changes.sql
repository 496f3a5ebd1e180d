with

records as (

    select *
    from {{ source('datastream_crm', 'contacts') }}
    where source_table = 'contacts' and entry = 'record'

),

parsed as (

    {{ datastream_file_records('records', 'datastream_crm', 'contacts') }}

),

delivered as (

    {{ delivered_texts('parsed', 'contacts') }}

),

typed as (

    {{ typed_columns('delivered', 'contacts', binary_encoding='hex') }}

),

placed as (

    {{ places_in_file('typed', 'contacts') }}

),

changes as (

    {{ change_contract('placed', 'datastream_crm', 'contacts', has_place=true) }}

)

select * from changes
