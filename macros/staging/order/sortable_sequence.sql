{%- macro sortable_sequence(parts) -%}
    {%- set sections = [] -%}
    {%- for part in parts -%}
        {%- if part.base == 'hex' -%}
            {%- do sections.append(highwater._hex_sections(
                part.text, part.get('separator', '/'), part.get('at_least', 1), part.get('at_most', 1)
            )) -%}
        {%- elif part.base == 'decimal' -%}
            {%- do sections.append(highwater._decimal_section(part.text, part.get('is_unsigned', false))) -%}
        {%- else -%}
            {{ exceptions.raise_compiler_error(
                "sortable_sequence: base is '" ~ part.base ~ "'; it must be 'hex' or 'decimal', for example "
                ~ "{'text': 'metadata.scn', 'base': 'decimal'}."
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {#- concat is NULL as soon as one section is: a sequence is whole, or it is not there -#}
    {%- if sections | length == 1 -%}
        {{- sections[0] -}}
    {%- else -%}
concat(
    {{ sections | join(",\n'/',\n") | indent(4) }}
)
    {%- endif -%}
{%- endmacro -%}

{%- macro _hex_sections(text, separator, at_least, at_most) -%}
    {%- set section = "0*[0-9A-Fa-f]{1,16}" -%}
    {%- set pattern = "^" ~ section ~ "([" ~ separator ~ "]" ~ section ~ "){"
        ~ (at_least - 1) ~ "," ~ (at_most - 1) ~ "}" -%}
case
    when {{ text }} rlike '{{ pattern }}\\z'
        -- at most 16 digits count
        then lower({{ 'concat(' if at_most > 1 }}
            {%- for ordinal in range(1, at_most + 1) %}
            lpad(trim(leading '0' from {{ "split_part(" ~ text ~ ", '" ~ separator ~ "', " ~ ordinal ~ ")" if at_most > 1 else text }}), 16, '0')
            {{- ", '/'," if not loop.last }}
            {%- endfor %}
        {{- ')' if at_most > 1 }})
end
{%- endmacro -%}

{%- macro _decimal_section(text, is_unsigned) -%}
    {#- a producer that counts in 63 bits has written nothing above them -#}
    {%- set value = 'try_cast(' ~ text ~ (' as decimal(38, 0))' if is_unsigned else ' as bigint)') -%}
case
    when {{ text }} rlike '^0*[0-9]{1,20}\\z'
        and {{ value ~ ' <= 18446744073709551615' if is_unsigned else value ~ ' is not null' }}
        then lpad(lower(conv({{ text }}, 10, 16)), 16, '0')
end
{%- endmacro -%}
