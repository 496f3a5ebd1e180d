{%- macro refuse_new_fields(found, entity) -%}
    {%- set rows = run_query('select * from (' ~ found ~ ") where problem = 'is not declared' order by source_file, first_line limit 1").rows -%}
    {%- for row in rows -%}
        {{ exceptions.raise_compiler_error(
            row.source_file ~ ", line " ~ row.first_line ~ ": the field " ~ row.field ~ " is not declared, and the feed says "
            ~ "`new_fields: fail`, so nothing was taken in. What makes a column of it is said by: highwater check"
        ) }}
    {%- endfor -%}
{%- endmacro -%}
