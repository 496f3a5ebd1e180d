with

records as (

    {{ latest_export(source('exports_crm', 'contacts'), 'contacts') }}

),

parsed as (

    {{ exported_records('records', 'exports_crm') }}

),

delivered as (

    {{ delivered_texts('parsed', 'contacts') }}

),

typed as (

    {{ typed_columns('delivered', 'contacts', binary_encoding='hex') }}

),

rows_of_export as (

    {{ change_contract('typed', 'exports_crm', 'contacts') }}

)

select * from rows_of_export
