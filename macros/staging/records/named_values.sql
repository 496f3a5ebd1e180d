{%- macro named_values(texts, periods, is_delete=none, key=[]) -%}
    {%- set every = [] -%}
    {%- for period in periods -%}
        {%- for name in period.columns if name not in every -%}
            {%- do every.append(name) -%}
        {%- endfor -%}
    {%- endfor -%}
case
    {%- for period in periods | reverse %}
    {%- set others = every | reject('in', period.columns) | list %}
    when size({{ texts }}) = {{ period.columns | length }}{{ ' and (' ~ period.when ~ ')' if period.when }}
        {%- if others %}
        -- columns of other periods are NULL
        then map_from_arrays(
            array({{ highwater.quoted_texts(period.columns + others) }}),
            concat({{ texts }}, array_repeat(cast(null as string), {{ others | length }}))
        )
        {%- else %}
        then map_from_arrays(array({{ highwater.quoted_texts(period.columns) }}), {{ texts }})
        {%- endif %}
    {%- endfor %}
    {%- if key %}
    -- a delete is told by its key, which stands first, whatever else it lacks
    when {{ is_delete }} then map_from_arrays(array({{ highwater.quoted_texts(key) }}), slice({{ texts }}, 1, {{ key | length }}))
    {%- endif %}
end
{%- endmacro -%}
