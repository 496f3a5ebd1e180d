with

records as (

    select *
    from {{ source('<< feed >>', '<< table >>') }}
    where source_table = '<< table >>' and entry = 'record'

),

parsed as (

    {{ << "exported_records('records')" if format == 'csv' else "datastream_records('records', '" ~ feed ~ "', '" ~ entity ~ "')" >> }}

),

typed as (

    {{ typed_columns('parsed', '<< entity >>') }}

),

changes as (

    {{ change_contract('typed', '<< feed >>', '<< entity >>') }}

)

select * from changes
