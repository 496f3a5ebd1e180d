{%- macro differing_keys(lake, export, key, columns) -%}
select
    {{ key | join(',\n    ') }},
    sum(lake_rows) as lake_rows,
    sum(export_rows) as export_rows,
    -- what stands on both sides adds up to nothing
    sum(lake_rows) <> sum(export_rows) or sum(high_bits) <> 0 or sum(low_bits) <> 0 as differs
from (
    {%- for side, relation in [('lake', lake), ('export', export)] %}
    {%- set sign = '-' if side == 'export' %}
    {%- if not loop.first %}

    union all
    {% endif %}
    select
        {{ key | join(',\n        ') }},
        {{ 1 if side == 'lake' else 0 }} as lake_rows,
        {{ 1 if side == 'export' else 0 }} as export_rows,
        {{ sign }}shiftright(row_hash, 32) as high_bits,
        {{ sign }}(row_hash & 4294967295) as low_bits
    from (
        select
            {%- for column in columns if column.name in key %}
            {{ column[side ~ '_by_rules'] }} as {{ column.name }},
            {%- endfor %}
            {{ _row_hash(side, columns) | indent(8) }} as row_hash
        from {{ relation }}
    )
    {%- endfor %}
)
group by {{ key | join(', ') }}
{%- endmacro -%}
