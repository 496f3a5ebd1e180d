{%- macro ledger_rows(batch) -%}
    {%- set feed = batch.raw_table.identifier -%}
    select
        '{{ batch.entity }}' as table_name,
        delivered.feed,
        delivered.landing_batch,
        delivered.landed_at,
        delivered.read,
        coalesce(judged.applied, 0) as applied,
        coalesce(judged.superseded, 0) as superseded,
        coalesce(judged.duplicate, 0) as duplicate,
        coalesce(judged.rejected, 0) as rejected,
        coalesce(judged.tied, 0) as tied
    from (
        select
            '{{ feed }}' as feed,
            landing_batch,
            min(landed_at) as landed_at,
            count(*) as read
        from {{ batch.raw_table }}
        where
            entry = 'record'
            and source_table = '{{ batch.source_table }}'
            and landing_batch > {{ batch.mark }}
            -- what the log has not read yet is not lost, only later
            and landing_batch <= (
                select max(landing_batch)
                from {{ batch.log }}
                where feed = '{{ feed }}' and landing_batch > {{ batch.mark }}
            )
        group by landing_batch
    ) as delivered
    left join (
        select
            landing_batch,
            count_if(verdict = 'applied') as applied,
            count_if(verdict = 'superseded') as superseded,
            count_if(verdict = 'duplicate') as duplicate,
            count_if(verdict = 'rejected') as rejected,
            count_if(is_tied) as tied
        from {{ batch.log }}
        -- a record may stand for two changes; it is counted by its own
        where feed = '{{ feed }}' and landing_batch > {{ batch.mark }} and not is_derived
        group by landing_batch
    ) as judged
        on delivered.landing_batch = judged.landing_batch
{%- endmacro -%}
