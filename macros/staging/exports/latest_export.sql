{%- macro latest_export(raw_table, source_table) -%}
    select *
    from {{ raw_table }}
    where
        source_table = {{ highwater.sql_text(source_table) }}
        and entry = 'record'
        and array_contains(
            (
                select max_by(parts.source_file, place)
                from (
                    {{ highwater.delivered_exports(raw_table, source_table) | indent(20) }}
                )
            ),
            source_file
        )
{%- endmacro -%}
