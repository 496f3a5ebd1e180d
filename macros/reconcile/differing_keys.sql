{%- macro differing_keys(lake, export, key, columns) -%}
select
    `{{ key | join('`,\n    `') }}`,
    sum(`lake rows`) as `lake rows`,
    sum(`export rows`) as `export rows`,
    -- what stands on both sides adds up to nothing
    sum(`lake rows`) <> sum(`export rows`) or sum(`high bits`) <> 0 or sum(`low bits`) <> 0 as `is different`
from (
    {%- for side, relation in [('lake', lake), ('export', export)] %}
    {%- set sign = '-' if side == 'export' %}
    {%- if not loop.first %}

    union all
    {% endif %}
    select
        `{{ key | join('`,\n        `') }}`,
        {{ 1 if side == 'lake' else 0 }} as `lake rows`,
        {{ 1 if side == 'export' else 0 }} as `export rows`,
        {{ sign }}shiftright(`row hash`, 32) as `high bits`,
        {{ sign }}(`row hash` & 4294967295) as `low bits`
    from (
        select
            {%- for column in columns if column.name in key %}
            {{ column[side ~ '_by_rules'] }} as `{{ column.name }}`,
            {%- endfor %}
            {{ highwater.row_hash(side, columns) | indent(8) }} as `row hash`
        from {{ relation }}
    )
    {%- endfor %}
)
group by `{{ key | join('`, `') }}`
{%- endmacro -%}
