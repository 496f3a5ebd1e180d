{%- macro bucket_of_key(side, key, columns) -%}
    {#- More buckets make the checksums dearer; with fewer more rows are compared where a few differ. -#}
pmod(xxhash64(
    {%- for column in columns if column.name in key or not key -%}
    {{ highwater.hashable(column[side ~ '_by_rules'], column.data_type) }}{{ ', ' if not loop.last }}
    {%- endfor -%}
), 16384)
{%- endmacro -%}
