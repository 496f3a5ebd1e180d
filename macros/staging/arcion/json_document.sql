{%- macro json_document(text, type) -%}
get(transform(
    array({{ highwater.wrapped_document(text, type) | indent(4) }}),
    found -> {{ highwater.whole_document('found') | indent(4) }}
), 0)
{%- endmacro -%}
