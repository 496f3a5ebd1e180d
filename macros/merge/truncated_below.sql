{%- macro truncated_below(arriving, comparison) -%}
    {%- set current = [] -%}
    {%- set arrived = [] -%}
    {%- for truncate in arriving.truncates -%}
        {%- if truncate.landed_at is none -%}
            {%- do current.append("'" ~ truncate.sequence ~ "'") -%}
        {%- else -%}
            {%- do arrived.append(
                'case when unix_micros(landed_at) ' ~ comparison ~ ' ' ~ truncate.landed_at ~ " then '"
                ~ truncate.sequence ~ "' end"
            ) -%}
        {%- endif -%}
    {%- endfor -%}
greatest(
    '',
    {{ (current + arrived) | join(',\n    ') }}
)
{%- endmacro -%}
