{%- macro arcion_csv_records(records, feed, table, entity) -%}
    {%- set periods = highwater.column_periods(feed, table) -%}
    {%- set columns = highwater.delivered_columns(feed, table) -%}
    {%- set has_header = highwater.feed_setting(feed, 'header', false) -%}
    {%- set last = highwater.feed_setting(feed, 'columns', ['optype', 'cursor', 'operationcounts']) -%}
    {%- set has_periods = periods | length > 1 -%}
    {%- set count = columns | length -%}
    {%- do highwater.refuse_missing_fields(highwater.fields_of_files(highwater.entity_columns(entity), feed, table, entity), feed, table) -%}
    {%- set triplets_of = [] -%}
    {%- set of_rows = [] -%}
    {%- set of_changes = [] -%}
    {%- for period in periods -%}
        {%- set triplets = [] -%}
        {%- for column in period.columns -%}
            {%- do triplets.extend([column ~ '_NEW', column ~ '_OLD', column ~ '_EXISTS']) -%}
        {%- endfor -%}
        {%- do triplets_of.append(triplets) -%}
        {%- do of_rows.append(period.columns | length) -%}
        {%- do of_changes.append(3 * period.columns | length + 3) -%}
    {%- endfor -%}
    {%- for period in periods if period.columns | length in of_changes and not period.when -%}
        {{ exceptions.raise_compiler_error(
            "a line of " ~ period.columns | length ~ " values of " ~ feed ~ "." ~ table ~ " is a row of one period of its columns and a change of another; "
            ~ "say with `when:` which lines are of the period of so many columns."
        ) }}
    {%- endfor -%}
    {%- set parsed %}
        select
            * except (problem),
            case
                when problem is not null then problem
                {%- if has_periods %}
                when period is null
                {%- else %}
                when not is_snapshot and values_delivered <> {{ 3 * count + 3 }}
                {%- endif %}
                    then concat('wrong_column_count: ', values_delivered, ' values where {{ of_rows | unique | join(' or ') }} (a row) or {{ of_changes | unique | join(' or ') }} (a change) are declared')
                {%- for period in periods if has_header %}
                {%- set own = 'columns_delivered = ' ~ period.columns | length ~ ' and ' if has_periods else '' %}
                {{- highwater.missing_fields('fields', period.columns, own ~ 'is_snapshot') | indent(16) }}
                {{- highwater.missing_fields('fields', triplets_of[loop.index0] + last[:2], own ~ 'not is_snapshot') | indent(16) }}
                {%- endfor %}
            end as problem
        from (
            select
                *,
                cast(null as string) as text,
                case when is_snapshot then 'I' else {{ highwater._arcion_field('3 * columns_delivered' if has_periods else 3 * count, last[0], has_header) }} end as optype,
                case when not is_snapshot then {{ highwater._arcion_field('3 * columns_delivered + 1' if has_periods else 3 * count + 1, last[1], has_header) }} end as cursor,
                case when not is_snapshot then {{ highwater._arcion_values(1, '_OLD', has_header, has_periods) | indent(16) }} end as before,
                case
                    when is_snapshot then {{
                        'fields' if has_header
                        else 'map_from_arrays(names, concat(delivered, array_repeat(cast(null as string), size(names) - columns_delivered)))' if has_periods
                        else 'map_from_arrays(names, delivered)'
                    }}
                    else {{ highwater._arcion_values(0, '_NEW', has_header, has_periods) | indent(20) }}
                end as after,
                case when not is_snapshot then {{ highwater._arcion_values(2, '_EXISTS', has_header, has_periods) | indent(16) }} end as presence,
                true as is_readable
            from (
                {%- if has_periods %}
                select
                    *,
                    period.names,
                    period.columns_delivered,
                    coalesce(values_delivered = period.columns_delivered, false) as is_snapshot
                from (
                    select
                        *,
                        map_values(fields) as delivered,
                        size(fields) as values_delivered,
                        -- the columns of its lines, and behind them those of other periods, which are NULL
                        case
                            {%- for period in periods | reverse %}
                            when size(fields) in ({{ period.columns | length }}, {{ 3 * period.columns | length + 3 }}){{ ' and (' ~ period.when ~ ')' if period.when }}
                                then struct(
                                    array({{ highwater.quoted_texts(period.columns + columns | reject('in', period.columns) | list) }}) as names,
                                    {{ period.columns | length }} as columns_delivered
                                )
                            {%- endfor %}
                        end as period
                    from {{ records }}
                )
                {%- else %}
                select
                    *,
                    map_values(fields) as delivered,
                    array({{ highwater.quoted_texts(columns) }}) as names,
                    size(fields) as values_delivered,
                    size(fields) = {{ count }} as is_snapshot
                from {{ records }}
                {%- endif %}
            )
        )
    {%- endset -%}
    {{- highwater.arcion_changes(parsed, feed, table, entity, is_text=false) -}}
{%- endmacro -%}

{%- macro _arcion_field(ordinal, name, has_header) -%}
{{ 'fields[' ~ highwater.sql_text(name) ~ ']' if has_header else 'get(delivered, ' ~ ordinal ~ ')' }}
{%- endmacro -%}

{%- macro _arcion_values(offset, ending, has_header, has_periods=false) -%}
    {%- set value = "fields[concat(name, '" ~ ending ~ "')]" if has_header else 'get(delivered, 3 * ordinal + ' ~ offset ~ ')' -%}
    {#- a column of another period is there, and NULL: the row is whole -#}
    {%- set of_others = "'1'" if ending == '_EXISTS' else 'null' -%}
map_from_arrays(names, transform(names, (name, ordinal) -> {{
    'if(ordinal < columns_delivered, ' ~ value ~ ', ' ~ of_others ~ ')' if has_periods else value
}}))
{%- endmacro -%}
