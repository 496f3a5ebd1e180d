with

records as (

    select *
    from {{ source('<< feed >>', '<< table >>') }}
    where source_table = << source_table | sql >> and entry = 'record'

),

parsed as (

    {{ << records >> }}

),
<% set latest = 'parsed' %>
<% if format.has_old_key %>
<% set latest = 'parts' %>

parts as (

    {{ highwater.parts_of_changes('parsed', '<< entity >>') }}

),
<% endif %>

delivered as (

    {{ highwater.delivered_texts('<< latest >>', '<< entity >>') }}

),

typed as (

    {{ highwater.typed_columns('delivered', '<< entity >>'<< format.typed >>) }}

),
<% set latest = 'typed' %>
<% if format.has_place %>
<% set latest = 'placed' %>

placed as (

    {{ highwater.places_in_file('typed', '<< entity >>'<< ', has_parts=true' if format.has_old_key >><< ', has_row_number=true' if format.has_row_number >>) }}

),
<% endif %>

changes as (

    {{ highwater.change_contract('<< latest >>', '<< feed >>', '<< entity >>'<< ', has_parts=true' if format.has_old_key >><< ', has_place=true' if format.has_place >>) }}

)

select * from changes
