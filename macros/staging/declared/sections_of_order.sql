{%- macro sections_of_order(order, feed) -%}
    {%- set parts = [] -%}
    {%- for section in order if section is mapping -%}
        {%- set kind = section.keys() | select('in', ['integer', 'hex', 'lsn', 'file', 'digits', 'text', 'timestamp']) | first -%}
        {%- set value = highwater.value_of_record(section[kind], feed) -%}
        {%- if kind == 'integer' -%}
            {%- do parts.append({'text': value, 'base': 'decimal'}) -%}
        {%- elif kind == 'hex' -%}
            {%- set count = section.get('sections', 1) -%}
            {%- do parts.append({
                'text': value, 'base': 'hex', 'separator': section.get('separator', '/'), 'at_least': count, 'at_most': count,
            }) -%}
        {%- elif kind == 'lsn' -%}
            {%- do parts.append({'text': value, 'base': 'hex', 'at_least': 2, 'at_most': 2}) -%}
        {%- elif kind == 'file' -%}
            {#- the number of a log is behind the last dot of its name -#}
            {%- do parts.append({'text': "split_part(" ~ value ~ ", '.', -1)", 'base': 'decimal'}) -%}
        {%- elif kind == 'timestamp' -%}
            {%- do parts.append({'text': highwater._moment_as_number(value, section.get('unit')), 'base': 'decimal'}) -%}
        {%- else -%}
            {%- do parts.extend(highwater._parts_of_fixed_width(kind, value, section.width)) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(parts) }}
{%- endmacro -%}

{%- macro _moment_as_number(value, unit) -%}
    {#- nanoseconds are counted as such, so that none of them is lost -#}
    {%- if unit == 'nanoseconds' -%}
        {{ return(value) }}
    {%- endif -%}
    {{ return('cast(unix_micros(' ~ highwater.moment_of_record(value, unit) ~ ') as string)') }}
{%- endmacro -%}

{%- macro _parts_of_fixed_width(kind, value, width) -%}
    {%- set parts = [] -%}
    {%- if kind == 'digits' -%}
        {%- set count = (width + 15) // 16 -%}
        {%- for ordinal in range(count) -%}
            {%- do parts.append({
                'text': "case when " ~ value ~ " rlike '^[0-9]{1," ~ width ~ "}\\\\z' then substr(lpad(" ~ value ~ ", " ~ count * 16 ~ ", '0'), " ~ (ordinal * 16 + 1) ~ ", 16) end",
                'base': 'decimal',
            }) -%}
        {%- endfor -%}
    {%- else -%}
        {%- for ordinal in range((width + 7) // 8) -%}
            {#- eight bytes of the text each -#}
            {%- do parts.append({
                'text': "case when octet_length(" ~ value ~ ") = " ~ width ~ " then rpad(hex(substr(cast(" ~ value ~ " as binary), " ~ (ordinal * 8 + 1) ~ ", 8)), 16, '0') end",
                'base': 'hex',
            }) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(parts) }}
{%- endmacro -%}
