{%- macro staged_changes(
    records, source, entity, parsed,
    binary_encoding='base64', has_present=false, has_old_key=false, has_place=false, has_row_number=false
) -%}
with

records as (

    select *
    from {{ records }}
    where source_table = {{ highwater.sql_text(source.name_in_raw) }} and entry = 'record'

),

parsed as (

    {{ parsed }}

),

{% if has_old_key -%}
parts as (

    {{ highwater.parts_of_changes('parsed', entity) }}

),

{% endif -%}
delivered as (

    {{ highwater.delivered_texts('parts' if has_old_key else 'parsed', entity) }}

),

typed as (

    {{ highwater.typed_columns('delivered', entity, binary_encoding=binary_encoding, has_present=has_present) }}

),

{% if has_place -%}
numbered as (

    {{ highwater.places_in_file('typed', entity, has_parts=has_old_key, has_row_number=has_row_number) }}

),

{% endif -%}
changes as (

    {{ highwater.change_contract(
        'numbered' if has_place else 'typed', source.feed, entity, has_parts=has_old_key, has_place=has_place
    ) }}

)

select * from changes
{%- endmacro -%}
