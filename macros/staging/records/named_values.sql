{%- macro named_values(texts, names) -%}
case
    when size({{ texts }}) = {{ names | length }}
        then map_from_arrays(array({{ highwater.quoted_texts(names) }}), {{ texts }})
end
{%- endmacro -%}
