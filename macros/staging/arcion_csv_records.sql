{%- macro arcion_csv_records(records, feed, table, entity) -%}
    {%- set columns = delivered_columns(feed, table) -%}
    {%- set has_header = feed_setting(feed, 'header', false) -%}
    {%- set last = feed_setting(feed, 'columns', ['optype', 'cursor', 'operationcounts']) -%}
    {%- set count = columns | length -%}
    {%- set triplets = [] -%}
    {%- for column in columns -%}
        {%- do triplets.extend([column ~ '_NEW', column ~ '_OLD', column ~ '_EXISTS']) -%}
    {%- endfor -%}
    {%- set parsed -%}
        select
            * except (problem),
            case
                when problem is not null then problem
                when not is_snapshot and values_delivered <> {{ 3 * count + 3 }} then 'wrong_column_count'
                {%- if has_header %}
                when is_snapshot and {{ _lacks('fields', columns) }} then 'wrong_column_count'
                when not is_snapshot and {{ _lacks('fields', triplets + last[:2]) }} then 'wrong_column_count'
                {%- endif %}
            end as problem,
            case when not is_snapshot then {{ _arcion_field(3 * count + 1, last[0], has_header) }} else 'I' end as optype,
            case when not is_snapshot then {{ _arcion_field(3 * count + 2, last[1], has_header) }} end as cursor,
            case when not is_snapshot then map(
                {%- for column in columns %}
                '{{ column }}', {{ _arcion_field(3 * loop.index0 + 2, column ~ '_OLD', has_header) }}{{ ',' if not loop.last }}
                {%- endfor %}
            ) end as before,
            case
                when is_snapshot then map(
                    {%- for column in columns %}
                    '{{ column }}', {{ _arcion_field(loop.index, column, has_header) }}{{ ',' if not loop.last }}
                    {%- endfor %}
                )
                else map(
                    {%- for column in columns %}
                    '{{ column }}', {{ _arcion_field(3 * loop.index0 + 1, column ~ '_NEW', has_header) }}{{ ',' if not loop.last }}
                    {%- endfor %}
                )
            end as after,
            case when not is_snapshot then map(
                {%- for column in columns %}
                '{{ column }}', {{ _arcion_field(3 * loop.index0 + 3, column ~ '_EXISTS', has_header) }}{{ ',' if not loop.last }}
                {%- endfor %}
            ) end as presence,
            true as is_readable
        from (
            select
                *,
                cast(null as string) as text,
                size(fields) as values_delivered,
                size(fields) = {{ count }} as is_snapshot
            from {{ records }}
        )
    {%- endset -%}
    {{- arcion_changes(parsed, feed, entity, is_text=false) -}}
{%- endmacro -%}

{%- macro _arcion_field(place, name, has_header) -%}
fields['{{ name if has_header else place }}']
{%- endmacro -%}
