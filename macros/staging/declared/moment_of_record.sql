{%- macro moment_of_record(value, unit=none) -%}
    {%- if unit is none -%}
        {{ return('try_cast(' ~ value ~ ' as timestamp)') }}
    {%- endif -%}
    {%- set micros = {'seconds': '* 1000000', 'milliseconds': '* 1000', 'microseconds': '* 1', 'nanoseconds': '/ 1000'}[unit] -%}
    {%- set number = 'floor(try_cast(' ~ value ~ ' as decimal(28, 9)) ' ~ micros ~ ')' -%}
    {#- up to the year 5138 -#}
    {{ return('case when abs(' ~ number ~ ') < 100000000000000000 then timestamp_micros(cast(' ~ number ~ ' as bigint)) end') }}
{%- endmacro -%}
