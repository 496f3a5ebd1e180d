{%- macro hashable(value, type) -%}
    {#- Inside nested values xxhash64 passes over NULLs as well; their text has them. -#}
    {%- if '<' in type -%}
to_json({{ value }}, map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS', 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'))
    {%- else -%}
{{ value }}
    {%- endif -%}
{%- endmacro -%}
