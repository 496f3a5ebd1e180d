{%- macro timestamp_of_millis(text) -%}
case
    when abs(try_cast({{ text }} as bigint)) < 100000000000000
        then timestamp_millis(try_cast({{ text }} as bigint))
end
{%- endmacro -%}
