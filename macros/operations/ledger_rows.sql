{%- macro ledger_rows(raw_table, tables) -%}
    {%- set feed = raw_table.identifier -%}
    select
        table_name,
        '{{ feed }}' as feed,
        landing_batch,
        landed_at,
        read,
        applied,
        superseded,
        duplicate,
        rejected,
        tied
    from (
        select
            table_name,
            landing_batch,
            min(landed_at) as landed_at,
            count_if(is_delivered) as read,
            -- a record may stand for two changes; it is counted by its own
            count_if(verdict = 'applied' and not is_derived) as applied,
            count_if(verdict = 'superseded' and not is_derived) as superseded,
            count_if(verdict = 'duplicate' and not is_derived) as duplicate,
            count_if(verdict = 'rejected' and not is_derived) as rejected,
            count_if(is_tied) as tied,
            max(max(if(is_delivered, null, landing_batch))) over (partition by table_name) as newest_in_log
        from (
            select
                queried.table_name,
                delivered.landing_batch,
                delivered.landed_at,
                true as is_delivered,
                cast(null as string) as verdict,
                false as is_derived,
                false as is_tied
            from {{ raw_table }} as delivered
            inner join (
                values
                {%- for table in tables %}
                ('{{ table.entity }}', {{ highwater.sql_text(table.source_table) }}, {{ table.watermark }}){{ ',' if not loop.last }}
                {%- endfor %}
            ) as queried (table_name, source_table, watermark)
                on delivered.source_table = queried.source_table and delivered.landing_batch > queried.watermark
            where delivered.entry = 'record' and delivered.landing_batch > {{ tables | map(attribute='watermark') | min }}
            {%- for table in tables %}

            union all

            select '{{ table.entity }}', landing_batch, null, false, verdict, is_derived, is_tied
            from {{ ref(project_name, table.entity ~ '_changes') }}
            where feed = '{{ feed }}' and landing_batch > {{ table.watermark }}
            {%- endfor %}
        )
        group by table_name, landing_batch
    )
    -- what the log has not read yet is not lost, only later
    where read > 0 and landing_batch <= newest_in_log
{%- endmacro -%}
