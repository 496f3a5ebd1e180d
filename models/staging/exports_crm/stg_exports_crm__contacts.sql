with

records as (

    {{ highwater.latest_export(source('exports_crm', 'contacts'), 'contacts') }}

),

parsed as (

    {{ highwater.exported_records('records', 'exports_crm') }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', 'contacts') }}

),

typed as (

    {{ highwater.typed_columns('delivered', 'contacts', binary_encoding='hex') }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', 'exports_crm', 'contacts') }}

)

select * from rows_of_export
