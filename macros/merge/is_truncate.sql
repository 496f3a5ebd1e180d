{%- macro is_truncate(key) -%}
    {#- No other row is without a key, and files are skipped by that: `truncate` lies between the other words. -#}
`{{ key[0] }}` is null and change_type = 'truncate'
{%- endmacro -%}
