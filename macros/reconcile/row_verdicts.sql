{%- macro row_verdicts(lake, export, key, columns, has_unique_keys=false) -%}
    {%- set keys = columns | selectattr('name', 'in', key) | list if key else columns -%}
    {%- set values = columns | rejectattr('name', 'in', key) | list if key else [] -%}
    {%- set by_rules = columns | selectattr('rules') | list -%}
with

lake as (
    {{ _rows_per_key(lake, 'lake', keys, values, columns, has_unique_keys and key) }}
),

export as (
    {{ _rows_per_key(export, 'export', keys, values, columns, has_unique_keys and key) }}
),

compared as (

    select
        {%- for column in keys %}
        coalesce(lake.{{ column.name }}, export.{{ column.name }}) as {{ column.name }},
        {%- endfor %}
        case
            when lake.row_count is null then 'missing_in_lake'
            when export.row_count is null then 'extra_in_lake'
            when lake.row_count > export.row_count then 'duplicate_in_lake'
            when lake.row_count < export.row_count then 'duplicate_in_export'
            {%- if values %}
            when not lake.compared_values <=> export.compared_values then 'value_differs'
            {%- endif %}
            else 'equal'
        end as verdict,
        {%- if values %}
        case
            when lake.row_count = export.row_count and not lake.compared_values <=> export.compared_values
                then array_compact(array(
                    {%- for column in values %}
                    if(not lake.compared_values.{{ column.name }} <=> export.compared_values.{{ column.name }}, '{{ column.name }}', null)
                    {{- ',' if not loop.last }}
                    {%- endfor %}
                ))
            else array()
        end as differing_columns,
        {%- else %}
        cast(array() as array<string>) as differing_columns,
        {%- endif %}
        {%- if by_rules %}
        case
            when lake.row_count = export.row_count and not lake.delivered_values <=> export.delivered_values
                then array_compact(array(
                    {%- for column in by_rules %}
                    if(
                        not lake.delivered_values.{{ column.name }} <=> export.delivered_values.{{ column.name }}
                        {%- if column in values %}
                        and lake.compared_values.{{ column.name }} <=> export.compared_values.{{ column.name }}
                        {%- endif %},
                        '{{ column.name }}',
                        null
                    )
                    {{- ',' if not loop.last }}
                    {%- endfor %}
                ))
            else array()
        end as columns_equal_by_rule,
        {%- endif %}
        coalesce(lake.row_count, 0) as lake_rows,
        coalesce(export.row_count, 0) as export_rows,
        {%- set content = 'delivered_values' if by_rules else 'compared_values' %}
        {%- if values or by_rules %}
        lake.{{ content }} as lake_values,
        export.{{ content }} as export_values
        {%- else %}
        cast(null as array<string>) as lake_values,
        cast(null as array<string>) as export_values
        {%- endif %}
    from lake
    full outer join export
        on
            {%- for column in keys %}
            {{ 'and ' if not loop.first }}lake.{{ column.name }} <=> export.{{ column.name }}
            {%- endfor %}

)

select * from compared
{%- endmacro -%}

{%- macro _rows_per_key(relation, side, keys, values, columns, has_unique_keys) -%}
    {%- set form = side ~ '_by_rules' -%}
    {%- set rows = [] -%}
    {%- if values -%}
        {%- do rows.append([_struct_of(values, form), 'compared_values']) -%}
    {%- endif -%}
    {%- if columns | selectattr('rules') | list -%}
        {%- do rows.append([_struct_of(columns, side), 'delivered_values']) -%}
    {%- endif -%}
    select
        {%- for column in keys %}
        {{ column[form] }}{{ ' as ' ~ column.name if column[form] != column.name }},
        {%- endfor %}
        {%- for row, name in rows %}
        {{ 'array(' ~ row ~ ')' if has_unique_keys else 'sort_array(collect_list(' ~ row ~ '))' }} as {{ name }},
        {%- endfor %}
        {{ '1L' if has_unique_keys else 'count(*)' }} as row_count
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
        {%- do fields.append(column[form] if column[form] == column.name else column[form] ~ ' as ' ~ column.name) -%}
    {%- endfor -%}
    {{ return('struct(\n            ' ~ fields | join(',\n            ') ~ '\n        )') }}
{%- endmacro -%}

{%- macro _with_masks(verdicts, key, columns, sensitive) -%}
    {%- if not sensitive -%}
        {{ return(verdicts) }}
    {%- endif -%}
    {%- set names = columns | map(attribute='name') | list -%}
    {%- set keys = key or names -%}
    {#- what row_verdicts hands on of a row -#}
    {%- set kept = names if columns | selectattr('rules') | list else names | reject('in', keys) | list -%}
select
    {%- for name in keys %}
    {{ _masked(name, name, sensitive) }},
    {%- endfor %}
    * except ({{ keys | join(', ') }}, lake_values, export_values)
    {%- for side in ['lake_values', 'export_values'] %},
    {%- if kept %}
    transform({{ side }}, held -> struct(
        {%- for name in kept %}
        {{ _masked('held.' ~ name, name, sensitive) }}{{ ',' if not loop.last }}
        {%- endfor %}
    )) as {{ side }}
    {%- else %}
    {{ side }}
    {%- endif %}
    {%- endfor %}
from (
{{ verdicts }}
)
{%- endmacro -%}

{%- macro _masked(value, name, sensitive) -%}
    {{ return(
        "if(" ~ value ~ " is null, null, '•••') as " ~ name if name in sensitive
        else value ~ (' as ' ~ name if value != name else '')
    ) }}
{%- endmacro -%}
