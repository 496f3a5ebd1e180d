{%- macro statements_of_parts(parts, at_once=none) -%}
    {#- Of each part its rows, some together in one statement; a part is of as many tables as it has conditions. -#}
    {%- set at_once = at_once or highwater.tables_at_once() -%}
    {%- set statements = [] -%}
    {%- for part in parts -%}
        {%- if statements and statements[-1].where | length + part.where | length <= at_once -%}
            {%- do statements[-1].where.extend(part.where) -%}
            {%- do statements[-1].rows.append(part.rows) -%}
        {%- else -%}
            {%- do statements.append({'where': part.where | list, 'rows': [part.rows]}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for statement in statements -%}
        {%- do statement.update({'rows': statement.rows | join('\n\n    union all\n\n    ')}) -%}
    {%- endfor -%}
    {{ return(statements) }}
{%- endmacro -%}
