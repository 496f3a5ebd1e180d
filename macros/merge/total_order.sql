{%- macro total_order(change) -%}
struct({{ change }}.change_sequence_number, not {{ change }}.is_deleted as is_live, {{ change }}.change_hash)
{%- endmacro -%}
