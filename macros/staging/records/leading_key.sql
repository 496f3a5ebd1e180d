{%- macro leading_key(periods, needed, beside=[]) -%}
    {%- set leading = [] -%}
    {%- if needed and periods -%}
        {%- for name in periods[0].columns if needed | reject('in', leading) | list -%}
            {%- do leading.append(name) -%}
        {%- endfor -%}
        {%- for period in periods if period.columns[:leading | length] != leading -%}
            {{ return([]) }}
        {%- endfor -%}
    {%- endif -%}
    {%- if needed | reject('in', leading) | list or leading | reject('in', needed + beside) | list -%}
        {{ return([]) }}
    {%- endif -%}
    {{ return(leading) }}
{%- endmacro -%}
