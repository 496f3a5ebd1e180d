with

records as (

    {{ latest_export(source('<< feed >>', '<< table >>'), '<< table >>') }}

),

parsed as (

    {{ << records >> }}

),

typed as (

    {{ typed_columns('parsed', '<< entity >>'<< encoding >>) }}

),

rows_of_export as (

    {{ change_contract('typed', '<< feed >>', '<< entity >>') }}

)

select * from rows_of_export
