{%- macro has_rows_of_seed(relation, agate_table) -%}
    {{ return(highwater._rows_as_text(run_query('select * from ' ~ relation)) == highwater._rows_as_text(agate_table)) }}
{%- endmacro -%}

{%- macro _rows_as_text(table) -%}
    {%- set texts = [] -%}
    {%- for row in table.rows -%}
        {%- do texts.append(row | map('string') | list) -%}
    {%- endfor -%}
    {{ return(texts | sort) }}
{%- endmacro -%}
