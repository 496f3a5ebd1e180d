{%- macro json_documents(text, type) -%}
-- from_json goes on behind what it cannot read, and does not look behind the end: so it has to say that it met
-- nothing unreadable, and to come to an end of ours
get(transform(
    array(from_json(
        concat('{"documents":[', {{ text }}, '],"is_whole":true}'),
        'struct<documents: array<{{ type }}>, is_whole: string, unreadable: string>',
        map(
            'allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'columnNameOfCorruptRecord', 'unreadable'
        )
    )),
    found -> if(
        found.unreadable is null and found.is_whole = 'true' and size(found.documents) = 1, found.documents, null
    )
), 0)
{%- endmacro -%}
