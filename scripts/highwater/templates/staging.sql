with

records as (

    select *
    from {{ source('<< feed >>', '<< table >>') }}
    where source_table = '<< table >>' and entry = 'record'

),

parsed as (

    {{ << records >> }}

),

typed as (

    {{ typed_columns('parsed', '<< entity >>'<< format.typed >>) }}

),
<% set latest = 'typed' %>
<% if format.has_old_key %>
<% set latest = 'parts' %>

parts as (

    {{ parts_of_changes('typed', '<< entity >>') }}

),
<% endif %>
<% if format.has_place %>

placed as (

    {{ places_in_file('<< latest >>', '<< entity >>'<< ', has_parts=true' if format.has_old_key >><< ', has_row_number=true' if format.has_row_number >>) }}

),
<% set latest = 'placed' %>
<% endif %>

changes as (

    {{ change_contract('<< latest >>', '<< feed >>', '<< entity >>'<< ', has_parts=true' if format.has_old_key >><< ', has_place=true' if format.has_place >>) }}

)

select * from changes
