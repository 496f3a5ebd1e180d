{%- macro wrapped_document(text, type) -%}
    {%- set is_struct = type.startswith('struct<') -%}
    {%- set element = 'struct<`end of record`: string, ' ~ type[7:] if is_struct else type -%}
-- from_json goes on behind what it cannot read, and does not look behind the end: so it has to say that it met
-- nothing unreadable, and to come to a last element of ours
from_json(
    concat('{"documents":[', {{ text }}, ',{"end of record":true}]}'),
    'struct<documents: array<{{ element }}>, unreadable: string>',
    map(
        'allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'columnNameOfCorruptRecord', 'unreadable',
        -- a text may be as long as a record
        'maxStringLen', '67108864'
    )
)
{%- endmacro -%}
