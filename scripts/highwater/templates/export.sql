with

records as (

    {{ highwater.latest_export(source('<< feed >>', '<< table >>'), << source_table | jinja >>) }}

),

parsed as (

    {{ << records >> }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', '<< entity >>') }}

),

typed as (

    {{ highwater.typed_columns('delivered', '<< entity >>'<< encoding >>) }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', '<< feed >>', '<< entity >>') }}

)

select * from rows_of_export
