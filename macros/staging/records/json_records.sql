{%- macro json_records(records, type) %}
    select
        * except (wrapped),
        {{ highwater.whole_document('wrapped') | indent(8) }} as document
    from (
        select
            *,
            {{ highwater.wrapped_document('text', type) | indent(12) }} as wrapped
        from (
            select
                *,
                {{ highwater.json_text('delivered_text') | indent(16) }} as text
            from (
                -- out of its wrapping, where it was delivered in one
                select *, coalesce(fields['document'], cast(record as string)) as delivered_text
                from {{ records }}
            )
        )
    )
{%- endmacro -%}
