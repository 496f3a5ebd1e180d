{%- macro kafka_offset(feed, is_truncate) -%}
    {#- without anything around it a record may have a column that is called offset -#}
    {%- set delivered = 'cast(record as string)' -%}
    {%- set around = "get_json_object(" ~ delivered ~ ", '$." ~ highwater.feed_setting(feed, 'wrapping', 'value') ~ "')" -%}
    {%- set offset = "coalesce(fields['offset'], get_json_object(" ~ delivered ~ ", '$.offset'), get_json_object(" ~ delivered
        ~ ", '$.metadata.offset'), get_json_object(" ~ delivered ~ ", '$.RECORD_METADATA.offset'))" -%}
case
    -- other partitions have other offsets, so nobody knows what a truncate comes behind
    when {{ is_truncate }} then null
    -- beside the record, in what a sink has put around it
    when ({{ around }} is not null or fields['offset'] is not null) and {{ offset }} is not null
        then concat({{ highwater.sortable_sequence([{'text': offset, 'base': 'decimal'}]) | indent(8) }}, '/0000000000000000')
    -- the file's name has the offset of its first record: <topic>+<partition>+<offset>
    else {{ highwater.sortable_sequence([
        {'text': "regexp_extract(source_file, '[+][0-9]+[+]([0-9]+)([.][^/+]*)?$', 1)", 'base': 'decimal'},
        {'text': 'string(source_line)', 'base': 'decimal'},
    ]) | indent(4) }}
end
{%- endmacro -%}
