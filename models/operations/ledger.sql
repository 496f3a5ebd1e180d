{%- do highwater.depends_on_logs() %}

-- rows come from the macro ledger_news, some tables at a time
select
    cast(null as string) as table_name,
    cast(null as string) as feed,
    cast(null as bigint) as landing_batch,
    cast(null as timestamp) as landed_at,
    cast(null as bigint) as read,
    cast(null as bigint) as applied,
    cast(null as bigint) as superseded,
    cast(null as bigint) as duplicate,
    cast(null as bigint) as rejected,
    cast(null as bigint) as tied
where false
