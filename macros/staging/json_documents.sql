{%- macro json_documents(text, type) -%}
    {%- set is_struct = type.startswith('struct<') -%}
-- from_json does not look behind the first value that ends: a last element shows that it came to the end of the text
get(transform(
    array(from_json(
        concat('[', {{ text }}, ',{"end of record":true}]'),
        'array<{{ 'struct<`end of record`: string, ' ~ type[7:] if is_struct else type }}>',
        map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false')
    )),
    found -> if(size(found) = 2 and get(found, 1)['end of record'] = 'true', slice(found, 1, 1), null)
), 0)
{%- endmacro -%}
