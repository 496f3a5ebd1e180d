with

records as (

    {{ latest_export(source('<< feed >>', '<< table >>'), << source_table | jinja >>) }}

),

parsed as (

    {{ << records >> }}

),

delivered as (

    {{ delivered_texts('parsed', '<< entity >>') }}

),

typed as (

    {{ typed_columns('delivered', '<< entity >>'<< encoding >>) }}

),

rows_of_export as (

    {{ change_contract('typed', '<< feed >>', '<< entity >>') }}

)

select * from rows_of_export
