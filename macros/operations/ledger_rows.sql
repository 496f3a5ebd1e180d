{%- macro ledger_rows(entity, raw_table, source_table, mark) -%}
    {%- set feed = raw_table.identifier -%}
    {%- set log = ref(entity ~ '_changes') -%}
    select
        '{{ entity }}' as table_name,
        '{{ feed }}' as feed,
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
            landing_batch,
            min(landed_at) as landed_at,
            count(*) as read
        from {{ raw_table }}
        where
            entry = 'record'
            and source_table = {{ _sql_text(source_table) }}
            and landing_batch > {{ mark }}
        group by landing_batch
    ) as delivered
    inner join (
        select max(landing_batch) as newest
        from {{ log }}
        where feed = '{{ feed }}' and landing_batch > {{ mark }}
    ) as taken_in
        -- what the log has not read yet is not lost, only later
        on delivered.landing_batch <= taken_in.newest
    left join (
        select
            landing_batch,
            -- a record may stand for two changes; it is counted by its own
            count_if(verdict = 'applied' and not is_derived) as applied,
            count_if(verdict = 'superseded' and not is_derived) as superseded,
            count_if(verdict = 'duplicate' and not is_derived) as duplicate,
            count_if(verdict = 'rejected' and not is_derived) as rejected,
            count_if(is_tied) as tied
        from {{ log }}
        where feed = '{{ feed }}' and landing_batch > {{ mark }}
        group by landing_batch
    ) as judged
        on delivered.landing_batch = judged.landing_batch
{%- endmacro -%}
