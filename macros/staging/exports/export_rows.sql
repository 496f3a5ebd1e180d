{%- macro export_rows(records, entity) -%}
    {%- set source = highwater.source_of_model(entity) -%}
    {#- what databases write for bytes into text -#}
    {%- set encoding = 'hex' if highwater.feed_setting(source.feed, 'format') == 'csv' else 'base64' -%}
with

records as (

    {{ highwater.latest_export(records, source.name_in_raw) }}

),

parsed as (

    {{ highwater.exported_records('records', source.feed, entity, is_export=true) }}

),

delivered as (

    {{ highwater.delivered_texts('parsed', entity) }}

),

typed as (

    {{ highwater.typed_columns('delivered', entity, binary_encoding=encoding) }}

),

rows_of_export as (

    {{ highwater.change_contract('typed', source.feed, entity) }}

)

select * from rows_of_export
{%- endmacro -%}
