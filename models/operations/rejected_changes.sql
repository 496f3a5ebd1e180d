{%- do highwater.depends_on_logs() %}
{%- do ref('ledger') %}
{%- do ref('rejection_reasons') %}

-- rows come from the macro rejected_changes_news, some tables at a time
select
    cast(null as string) as table_name,
    cast(null as string) as rejection_reason,
    cast(null as string) as rejection_detail,
    cast(null as string) as what_to_do,
    cast(null as string) as source_file,
    cast(null as int) as source_line,
    cast(null as string) as feed,
    cast(null as bigint) as landing_batch,
    cast(null as timestamp) as landed_at,
    cast(null as string) as text
where false
