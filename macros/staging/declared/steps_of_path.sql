{%- macro steps_of_path(path) -%}
    {%- set steps = [] -%}
    {%- for name, quoted in modules.re.findall("\\.([A-Za-z_]\\w*)|\\['([^']+)'\\]", path) -%}
        {%- do steps.append(name or quoted) -%}
    {%- endfor -%}
    {{ return(steps) }}
{%- endmacro -%}
