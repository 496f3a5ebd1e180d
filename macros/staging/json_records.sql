{%- macro json_records(records, type) %}
    select
        * except (wrapped),
        {{ _whole_document('wrapped') | indent(8) }} as document
    from (
        select
            *,
            {{ _wrapped_document('text', type) | indent(12) }} as wrapped
        from (
            select
                *,
                {{ json_text('record') | indent(16) }} as text
            from {{ records }}
        )
    )
{%- endmacro -%}
