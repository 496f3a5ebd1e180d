{%- macro latest_export(raw_table, source_table) -%}
    select *
    from {{ raw_table }}
    where
        source_table = {{ sql_text(source_table) }}
        and entry = 'record'
        and source_file = (
            select max_by(source_file, struct(landing_batch, source_file))
            from {{ raw_table }}
            where source_table = {{ sql_text(source_table) }} and entry = 'file'
        )
{%- endmacro -%}
