{%- macro staged_changes(
    records, source, entity, parsed,
    binary_encoding='base64', has_present=false, has_withheld=false, has_old_key=false, has_place=false, has_row_number=false,
    has_index=false
) -%}
    {%- set columns = highwater.entity_columns(entity) -%}
    {%- set renamed = columns | selectattr('former_fields') | list -%}
    {%- set later = columns | selectattr('came_later') | list -%}
    {%- set shard = highwater.shard_column(source.feed, source.table, entity) -%}
    {%- set named = 'renamed' if renamed else 'parsed' -%}
    {%- set read = 'shards' if shard else named -%}
with

records as (

    select *
    from {{ records }}
    where source_table = {{ highwater.sql_text(source.name_in_raw) }} and entry = 'record'

),

parsed as (

    {{ parsed }}

),

{% if renamed -%}
renamed as (

    {{ highwater.under_new_fields('parsed', renamed, has_old_key=has_old_key, has_withheld=has_withheld and later | length > 0) }}

),

{% endif -%}
{% if shard -%}
shards as (

    {{ highwater.changes_of_shards(named, source, shard.field, has_old_key=has_old_key) }}

),

{% endif -%}
{% if has_old_key -%}
parts as (

    {{ highwater.parts_of_changes(read, entity) }}

),

{% endif -%}
delivered as (

    {{ highwater.delivered_texts('parts' if has_old_key else read, entity) }}

),

typed as (

    {{ highwater.typed_columns(
        'delivered', entity, binary_encoding=binary_encoding, has_present=has_present, has_withheld=has_withheld
    ) }}

),

{% if has_place -%}
numbered as (

    {{ highwater.places_in_file('typed', entity, has_parts=has_old_key, has_row_number=has_row_number, has_index=has_index) }}

),

{% endif -%}
changes as (

    {{ highwater.change_contract(
        'numbered' if has_place else 'typed', source.feed, entity, has_parts=has_old_key, has_place=has_place
    ) }}

)

select * from changes
{%- endmacro -%}
