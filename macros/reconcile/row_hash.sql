{%- macro row_hash(side, columns) -%}
    xxhash64(
        {%- for column in columns %}
        {{ highwater.hashable(column[side], column.data_type) }},
        {%- endfor %}
        -- xxhash64 passes over NULLs, so where they are is hashed too
        {%- for chunk in columns | batch(60) %}
        {% for column in chunk -%}
        {{ 'if(`' ~ column.name ~ '` is null, ' ~ 2 ** loop.index0 ~ ', 0)' }}{{ ' + ' if not loop.last }}
        {%- endfor -%}
        {{ ',' if not loop.last }}
        {%- endfor %}
    )
{%- endmacro -%}
