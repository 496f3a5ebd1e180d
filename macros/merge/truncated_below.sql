{%- macro truncated_below(arriving, comparison) -%}
    {%- set standing = [] -%}
    {%- set arrived = [] -%}
    {%- for truncate in arriving.truncates -%}
        {%- if truncate.landed_at is none -%}
            {%- do standing.append("'" ~ truncate.sequence ~ "'") -%}
        {%- else -%}
            {%- do arrived.append(
                'case when unix_micros(landed_at) ' ~ comparison ~ ' ' ~ truncate.landed_at ~ " then '"
                ~ truncate.sequence ~ "' end"
            ) -%}
        {%- endif -%}
    {%- endfor -%}
greatest(
    '',
    {{ (standing + arrived) | join(',\n    ') }}
)
{%- endmacro -%}
