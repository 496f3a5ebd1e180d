{%- macro json_records(records, type) %}
    select
        *,
        {{ json_document('text', type) | indent(8) }} as document
    from (
        select
            *,
            {{ json_text('record') | indent(12) }} as text
        from {{ records }}
    )
{%- endmacro -%}
