{%- macro row_verdicts(lake, export, key, columns, has_unique_keys=false) -%}
    {%- set keys = columns | selectattr('name', 'in', key) | list if key else columns -%}
    {%- set values = columns | rejectattr('name', 'in', key) | list if key else [] -%}
    {%- set by_rules = columns | selectattr('rules') | list -%}
with

lake as (
    {{ highwater._rows_per_key(lake, 'lake', keys, values, columns, has_unique_keys and key) }}
),

export as (
    {{ highwater._rows_per_key(export, 'export', keys, values, columns, has_unique_keys and key) }}
),

compared as (

    select
        {%- for column in keys %}
        coalesce(lake.`{{ column.name }}`, export.`{{ column.name }}`) as `{{ column.name }}`,
        {%- endfor %}
        case
            when lake.`row count` is null then 'missing_in_lake'
            when export.`row count` is null then 'extra_in_lake'
            when lake.`row count` > export.`row count` then 'duplicate_in_lake'
            when lake.`row count` < export.`row count` then 'duplicate_in_export'
            {%- if values %}
            when not lake.`compared values` <=> export.`compared values` then 'value_differs'
            {%- endif %}
            else 'equal'
        end as `row verdict`,
        {%- if values %}
        case
            when lake.`row count` = export.`row count` and not lake.`compared values` <=> export.`compared values`
                then array_compact(array(
                    {%- for column in values %}
                    if(not lake.`compared values`.`{{ column.name }}` <=> export.`compared values`.`{{ column.name }}`, {{ highwater.sql_text(column.name) }}, null)
                    {{- ',' if not loop.last }}
                    {%- endfor %}
                ))
            else array()
        end as `differing columns`,
        {%- else %}
        cast(array() as array<string>) as `differing columns`,
        {%- endif %}
        {%- if by_rules %}
        case
            when lake.`row count` = export.`row count` and not lake.`delivered values` <=> export.`delivered values`
                then array_compact(array(
                    {%- for column in by_rules %}
                    if(
                        not lake.`delivered values`.`{{ column.name }}` <=> export.`delivered values`.`{{ column.name }}`
                        {%- if column in values %}
                        and lake.`compared values`.`{{ column.name }}` <=> export.`compared values`.`{{ column.name }}`
                        {%- endif %},
                        {{ highwater.sql_text(column.name) }},
                        null
                    )
                    {{- ',' if not loop.last }}
                    {%- endfor %}
                ))
            else array()
        end as `columns equal by rule`,
        {%- endif %}
        coalesce(lake.`row count`, 0) as `lake rows`,
        coalesce(export.`row count`, 0) as `export rows`,
        {%- set content = 'delivered values' if by_rules else 'compared values' %}
        {%- if values or by_rules %}
        lake.`{{ content }}` as `lake values`,
        export.`{{ content }}` as `export values`
        {%- else %}
        cast(null as array<string>) as `lake values`,
        cast(null as array<string>) as `export values`
        {%- endif %}
    from lake
    full outer join export
        on
            {%- for column in keys %}
            {{ 'and ' if not loop.first }}lake.`{{ column.name }}` <=> export.`{{ column.name }}`
            {%- endfor %}

)

select * from compared
{%- endmacro -%}

{%- macro _rows_per_key(relation, side, keys, values, columns, has_unique_keys) -%}
    {%- set form = side ~ '_by_rules' -%}
    {%- set rows = [] -%}
    {%- if values -%}
        {%- do rows.append([highwater._struct_of(values, form), 'compared values']) -%}
    {%- endif -%}
    {%- if columns | selectattr('rules') | list -%}
        {%- do rows.append([highwater._struct_of(columns, side), 'delivered values']) -%}
    {%- endif -%}
    select
        {%- for column in keys %}
        {{ column[form] }}{{ ' as `' ~ column.name ~ '`' if column[form] != '`' ~ column.name ~ '`' }},
        {%- endfor %}
        {%- for row, name in rows %}
        {{ 'array(' ~ row ~ ')' if has_unique_keys else 'sort_array(collect_list(' ~ row ~ '))' }} as `{{ name }}`,
        {%- endfor %}
        {{ '1L' if has_unique_keys else 'count(*)' }} as `row count`
    from {{ relation }}
    {%- if not has_unique_keys %}
    group by
        {%- for column in keys %}
        {{ column[form] }}{{ ',' if not loop.last }}
        {%- endfor %}
    {%- endif %}
{%- endmacro -%}

{%- macro _struct_of(columns, form) -%}
    {%- set fields = [] -%}
    {%- for column in columns -%}
        {%- do fields.append(column[form] ~ (' as `' ~ column.name ~ '`' if column[form] != '`' ~ column.name ~ '`' else '')) -%}
    {%- endfor -%}
    {{ return('struct(\n            ' ~ fields | join(',\n            ') ~ '\n        )') }}
{%- endmacro -%}
