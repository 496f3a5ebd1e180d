{%- macro key_as_json(entity) -%}
    to_json(struct({{ highwater.quoted_names(highwater.entity_key(entity) or ['feed']) }}))
{%- endmacro -%}
