{%- macro decimal_of_bytes(bytes, otherwise, scale) -%}
    {%- set is_negative = "hex(substr(" ~ bytes ~ ", 1, 1)) >= '80'" -%}
coalesce(
    get(transform(
        array(case when length({{ bytes }}) between 1 and 16 then aggregate(
            sequence(1, length({{ bytes }})),
            cast(0 as decimal(38, 0)),
            -- big-endian two's complement: a negative number is one less than minus its inverted bytes
            (number, ordinal) -> cast(
                try_add(
                    try_multiply(number, 256),
                    case
                        when {{ is_negative }} then 255 - cast(conv(hex(substr({{ bytes }}, ordinal, 1)), 16, 10) as int)
                        else cast(conv(hex(substr({{ bytes }}, ordinal, 1)), 16, 10) as int)
                    end
                ) as decimal(38, 0)
            ),
            number -> case when {{ is_negative }} then cast(try_subtract(-1, number) as decimal(38, 0)) else number end
        ) end),
        -- as text: Spark rounds the minus and the absolute value of a decimal to 34 digits
        number -> concat(
            case when number < 0 then '-' else '' end,
            regexp_replace(
                lpad(ltrim('-', number), greatest({{ scale }} + 1, length(ltrim('-', number))), '0'),
                concat('(.{', {{ scale }}, '})$'),
                case when {{ scale }} > 0 then '.$1' else '' end
            )
        )
    ), 0),
    {{ otherwise }}
)
{%- endmacro -%}
