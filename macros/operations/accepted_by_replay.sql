{%- macro accepted_by_replay(table) -%}
    {%- for feed, source_table in table.sources %}
    {%- if not loop.first %}

    union all

    {% endif -%}
    select
        '{{ table.entity }}' as table_name,
        source_file,
        source_line
    from {{ ref(table.entity ~ '_changes') }}
    where
        feed = '{{ feed }}'
        and rejection_reason is null
        and landing_batch in (select landing_batch from {{ source(feed, source_table) }} where entry = 'replayed')
    {%- endfor -%}
{%- endmacro -%}
