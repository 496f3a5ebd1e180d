{%- macro json_document(text, type) -%}
get(transform(
    array({{ highwater._wrapped_document(text, type) | indent(4) }}),
    found -> {{ highwater._whole_document('found') | indent(4) }}
), 0)
{%- endmacro -%}

{%- macro _wrapped_document(text, type) -%}
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

{%- macro _whole_document(found) -%}
if(
    {{ found }}.unreadable is null
    and size({{ found }}.documents) = 2
    and string(get({{ found }}.documents, 1)['end of record']) = 'true',
    get({{ found }}.documents, 0),
    null
)
{%- endmacro -%}
