{%- macro row_verdicts(lake, export, key, columns) -%}
with

lake as (
    {{ _rows_per_key(lake, 'lake', key, columns) }}
),

export as (
    {{ _rows_per_key(export, 'export', key, columns) }}
),

compared as (

    select
        {%- for column in key %}
        coalesce(lake.{{ column }}, export.{{ column }}) as {{ column }},
        {%- endfor %}
        case
            when lake.lake_rows is null then 'missing_in_lake'
            when export.export_rows is null then 'extra_in_lake'
            when lake.lake_rows > 1 then 'duplicate_in_lake'
            when export.export_rows > 1 then 'duplicate_in_export'
            when not lake.lake_row <=> export.export_row then 'value_differs'
            else 'equal'
        end as verdict,
        array_compact(array(
            {%- for column in columns %}
            case
                when lake.lake_rows = 1
                    and export.export_rows = 1
                    and not lake.lake_row.{{ column }} <=> export.export_row.{{ column }}
                    then '{{ column }}'
            end
            {{- ',' if not loop.last }}
            {%- endfor %}
        )) as differing_columns,
        lake.lake_rows,
        export.export_rows,
        lake.lake_row,
        export.export_row
    from lake
    full outer join export
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}lake.{{ column }} <=> export.{{ column }}
            {%- endfor %}

)

select * from compared
{%- endmacro -%}

{%- macro _rows_per_key(relation, side, key, columns) -%}
    select
        {{ key | join(', ') }},
        count(*) as {{ side }}_rows,
        min(struct({{ (columns or key) | join(', ') }})) as {{ side }}_row
    from {{ relation }}
    group by {{ key | join(', ') }}
{%- endmacro -%}

{%- macro _compared_columns(model, key) -%}
    {%- if not execute -%}
        {{ return([]) }}
    {%- endif -%}
    {#- The declared columns of the model, so that a column that went missing is an error and not a PASS. -#}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.name == model.identifier -%}
        {{ return(node.columns.keys() | reject('in', key) | list) }}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        "matches_export: " ~ model ~ " is no model of the project; name the columns to compare with `columns:`."
    ) }}
{%- endmacro -%}
