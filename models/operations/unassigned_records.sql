with

unassigned as (

    {%- for feed, tables in delivered_feeds().items() %}
    {%- if not loop.first %}

    union all
    {%- endif %}

    select
        '{{ feed }}' as feed,
        source_table,
        source_file,
        landing_batch,
        landed_at,
        source_line,
        record
    from {{ source(feed, tables[0]) }}
    where
        entry = 'record'
        and coalesce(source_table not in ({{ _quoted(tables) }}), true)
    {%- endfor %}

)

select
    feed,
    source_table,
    source_file,
    landing_batch,
    landed_at,
    count(*) as records,
    min(source_line) as first_line,
    min_by(
        case
            when is_valid_utf8(cast(record as string)) then cast(record as string)
            else concat('bytes in hex: ', hex(record))
        end,
        source_line
    ) as first_text
from unassigned
group by feed, source_table, source_file, landing_batch, landed_at
