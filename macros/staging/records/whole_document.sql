{%- macro whole_document(found) -%}
if(
    {{ found }}.unreadable is null
    and size({{ found }}.documents) = 2
    and string(get({{ found }}.documents, 1)['end of record']) = 'true',
    get({{ found }}.documents, 0),
    null
)
{%- endmacro -%}
