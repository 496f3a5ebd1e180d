{%- macro decimal_of_bytes(bytes, otherwise, scale) -%}
coalesce(
    transform(
        array(case when length({{ bytes }}) between 1 and 16 then aggregate(
            sequence(1, length({{ bytes }})),
            cast(0 as decimal(38, 0)),
            -- big-endian two's complement: only the first byte has a sign
            (number, place) -> cast(
                try_add(
                    try_multiply(number, 256),
                    cast(conv(hex(substr({{ bytes }}, place, 1)), 16, 10) as int)
                    - case when place = 1 and hex(substr({{ bytes }}, 1, 1)) >= '80' then 256 else 0 end
                ) as decimal(38, 0)
            )
        ) end),
        {%- if scale == 0 %}
        number -> cast(number as string)
        {%- else %}
        number -> concat(
            case when number < 0 then '-' else '' end,
            regexp_replace(
                lpad(abs(number), greatest({{ scale + 1 }}, length(cast(abs(number) as string))), '0'), '(.{{ '{' ~ scale ~ '}' }})$', '.$1'
            )
        )
        {%- endif %}
    )[0],
    {{ otherwise }}
)
{%- endmacro -%}
