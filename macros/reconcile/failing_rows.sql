{%- macro failing_rows(verdicts, key, columns, sensitive, landed=none) -%}
    {#- In names that a table can have, for dbt may keep the rows; the columns of the table stand in structs. -#}
    {%- set names = columns | map(attribute='name') | list -%}
    {%- set keys = key or names -%}
    {%- set by_rules = columns | selectattr('rules') | list -%}
    {#- what row_verdicts hands on of a row -#}
    {%- set kept = names if by_rules else names | reject('in', keys) | list -%}
select
    struct(
        {%- for name in keys %}
        {{ highwater._masked('`' ~ name ~ '`', name, sensitive) }}{{ ',' if not loop.last }}
        {%- endfor %}
    ) as key,
    `row verdict` as verdict,
    `differing columns` as differing_columns,
    {%- if by_rules %}
    `columns equal by rule` as columns_equal_by_rule,
    {%- endif %}
    `lake rows` as lake_rows,
    `export rows` as export_rows,
    {%- for side in ['lake', 'export'] %}
    {%- if kept | select('in', sensitive) | list %}
    transform(`{{ side }} values`, `held row` -> struct(
        {%- for name in kept %}
        {{ highwater._masked('`held row`.`' ~ name ~ '`', name, sensitive) }}{{ ',' if not loop.last }}
        {%- endfor %}
    )) as {{ side }}_values{{ ',' if not loop.last }}
    {%- else %}
    `{{ side }} values` as {{ side }}_values{{ ',' if not loop.last }}
    {%- endif %}
    {%- endfor %}
from (
{{ verdicts }}
)
where
    `row verdict` <> 'equal'
    {%- if landed %}
    -- before the first export has landed there is nothing to compare with
    and {{ landed }}
    {%- endif %}
{%- endmacro -%}

{%- macro _masked(value, name, sensitive) -%}
    {{ return("if(" ~ value ~ " is null, null, '•••') as `" ~ name ~ '`' if name in sensitive else value) }}
{%- endmacro -%}
