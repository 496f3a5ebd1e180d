{%- macro debezium_value(text, column, feed) -%}
    {%- set unit = column.unit or 'micros' -%}
    {%- if unit not in ('millis', 'micros', 'nanos') -%}
        {{ exceptions.raise_compiler_error(
            "the column " ~ column.name ~ " declares the unit '" ~ unit ~ "'; it must be millis, micros or nanos."
        ) }}
    {%- endif -%}
    {%- set micros = {
        'millis': 'try_multiply(try_cast(' ~ text ~ ' as bigint), 1000)',
        'micros': 'try_cast(' ~ text ~ ' as bigint)',
        'nanos': 'case when try_cast(' ~ text ~ ' as bigint) % 1000 = 0 then try_cast(' ~ text ~ ' as bigint) div 1000 end',
    }[unit] -%}
    {%- if column.data_type == 'date' -%}
case
    when {{ text }} rlike '^-?[0-9]{1,7}$' then cast(date_add(date '1970-01-01', cast({{ text }} as int)) as string)
    else {{ text }}
end
    {%- elif column.data_type in ('timestamp', 'timestamp_ntz') -%}
case
    -- beyond the years 1 to 9999 the number stays as it is, and does not fit
    when {{ micros }} between -62135596800000000 and 253402300799999999 then cast(timestamp_micros({{ micros }}) as string)
    else {{ text }}
end
    {%- elif column.data_type.startswith('decimal') and feed_setting(feed, 'decimals', 'precise') == 'precise' -%}
{{ decimal_of_bytes('try_to_binary(' ~ text ~ ", 'base64')", text, _decimal_digits(column.data_type)[1]) }}
    {%- else -%}
{{ text }}
    {%- endif -%}
{%- endmacro -%}
