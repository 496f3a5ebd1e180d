{%- macro missing_of_periods(fields, names, periods, condition) -%}
    {%- set conditions = [condition] -%}
    {%- for period in periods -%}
        {%- set others = periods | map(attribute='columns') | sum(start=[]) | reject('in', period.columns) | list -%}
        {%- set wanted = names | reject('in', others) | list -%}
        {%- if loop.last -%}
            {{- highwater.missing_fields(fields, wanted, conditions | join(' and ')) -}}
        {%- else -%}
            {%- do conditions.append('size(array_except(array(' ~ highwater.quoted_texts(wanted) ~ '), map_keys(' ~ fields ~ '))) > 0') -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro -%}
