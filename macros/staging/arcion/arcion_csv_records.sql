{%- macro arcion_csv_records(records, feed, table, entity) -%}
    {%- set columns = highwater.delivered_columns(feed, table) -%}
    {%- set has_header = highwater.feed_setting(feed, 'header', false) -%}
    {%- set last = highwater.feed_setting(feed, 'columns', ['optype', 'cursor', 'operationcounts']) -%}
    {%- set count = columns | length -%}
    {%- do highwater.refuse_missing_fields(highwater.entity_columns(entity) | map(attribute='field'), columns, feed ~ '.' ~ table) -%}
    {%- set triplets = [] -%}
    {%- for column in columns -%}
        {%- do triplets.extend([column ~ '_NEW', column ~ '_OLD', column ~ '_EXISTS']) -%}
    {%- endfor -%}
    {%- set parsed %}
        select
            * except (problem),
            case
                when problem is not null then problem
                when not is_snapshot and values_delivered <> {{ 3 * count + 3 }}
                    then concat('wrong_column_count: ', values_delivered, ' values where {{ count }} (a row) or {{ 3 * count + 3 }} (a change) are declared')
                {%- if has_header %}
                {{- highwater.missing_fields('fields', columns, 'is_snapshot') | indent(16) }}
                {{- highwater.missing_fields('fields', triplets + last[:2], 'not is_snapshot') | indent(16) }}
                {%- endif %}
            end as problem
        from (
            select
                *,
                cast(null as string) as text,
                case when is_snapshot then 'I' else {{ highwater._arcion_field(3 * count, last[0], has_header) }} end as optype,
                case when not is_snapshot then {{ highwater._arcion_field(3 * count + 1, last[1], has_header) }} end as cursor,
                case when not is_snapshot then {{ highwater._arcion_values(1, '_OLD', has_header) | indent(16) }} end as before,
                case
                    when is_snapshot then {{ 'fields' if has_header else 'map_from_arrays(names, delivered)' }}
                    else {{ highwater._arcion_values(0, '_NEW', has_header) | indent(20) }}
                end as after,
                case when not is_snapshot then {{ highwater._arcion_values(2, '_EXISTS', has_header) | indent(16) }} end as presence,
                true as is_readable
            from (
                select
                    *,
                    map_values(fields) as delivered,
                    array({{ highwater.quoted_texts(columns) }}) as names,
                    size(fields) as values_delivered,
                    size(fields) = {{ count }} as is_snapshot
                from {{ records }}
            )
        )
    {%- endset -%}
    {{- highwater.arcion_changes(parsed, feed, entity, is_text=false) -}}
{%- endmacro -%}

{%- macro _arcion_field(ordinal, name, has_header) -%}
{{ 'fields[' ~ highwater.sql_text(name) ~ ']' if has_header else 'get(delivered, ' ~ ordinal ~ ')' }}
{%- endmacro -%}

{%- macro _arcion_values(offset, ending, has_header) -%}
map_from_arrays(names, transform(names, (name, ordinal) -> {{
    "fields[concat(name, '" ~ ending ~ "')]" if has_header else 'get(delivered, 3 * ordinal + ' ~ offset ~ ')'
}}))
{%- endmacro -%}
