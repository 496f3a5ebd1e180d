{%- macro periods_in_yaml(periods) -%}
    {%- set lines = ['columns:'] -%}
    {%- for period in periods -%}
        {%- set names = [] -%}
        {%- for name in period.columns -%}
            {%- do names.append(name if modules.re.fullmatch('[A-Za-z_]\\w*', name) else tojson(name)) -%}
        {%- endfor -%}
        {%- do lines.append('  - {columns: [' ~ names | join(', ') ~ ']' ~ (', when: ' ~ tojson(period.when) if period.when) ~ '}') -%}
    {%- endfor -%}
    {{ return(lines | join('\n')) }}
{%- endmacro -%}
