{%- macro unreadable_text() %}
when text is null and not is_valid_utf8(delivered_text)
    then concat('not_utf8: character ', instr(make_valid_utf8(delivered_text), '�'), ' is no UTF-8')
when text is null
    then concat('not_utf8: half of a surrogate pair, ', regexp_extract(delivered_text, '\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}', 0))
{%- endmacro -%}
