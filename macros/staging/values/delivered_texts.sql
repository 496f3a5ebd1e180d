{%- macro delivered_texts(changes, entity) -%}
    select
        *,
        struct(
            {%- for column in highwater.entity_columns(entity) %}
            image[{{ highwater.sql_text(column.field) }}] as `{{ column.name }}`{{ ',' if not loop.last }}
            {%- endfor %}
        ) as text
    from {{ changes }}
{%- endmacro -%}
