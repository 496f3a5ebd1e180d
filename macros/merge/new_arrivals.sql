{%- macro new_arrivals(arriving) -%}
    {%- set columns = highwater.entity_columns(arriving.entity) -%}
    {%- for source in arriving.staged -%}
    {%- if not loop.first %}

    union all

    {% endif -%}
    select
        {%- for column in columns %}
        `{{ column.name }}`,
        {%- endfor %}
        {{ highwater.contract_columns() | join(',\n        ') }}
    from {{ source.relation }}
    where landing_batch > {{ source.watermark }}
    {%- if source.newest is defined %}
        -- what lands meanwhile is for the next build: what is current for it has not been queried
        and landing_batch <= {{ source.newest }}
    {%- endif %}
    {%- endfor -%}
    {%- for resync in arriving.resyncs %}

    union all

    -- epoch {{ resync.epoch }} of {{ resync.feed }} begins: a new baseline, which empties the table
    select
        {%- for column in columns %}
        cast(null as {{ column.data_type }}),
        {%- endfor %}
        '{{ resync.sequence }}',
        'truncate',
        true,
        cast(null as timestamp),
        cast(null as array<string>),
        true,
        0L,
        'epoch {{ resync.epoch }}',
        0,
        '{{ resync.feed }}',
        {{ resync.landing_batch }}L,
        timestamp_micros({{ resync.landed_at }}),
        cast(null as string),
        cast(null as string),
        cast(null as binary)
    {%- endfor -%}
{%- endmacro -%}
