{%- macro counted_in_ledger(ledger) -%}
    {%- set shared = highwater.shared_by_lists() -%}
    {%- if 'counted' not in shared -%}
        {%- do shared.update({'counted': run_query(highwater._counted_by_list(ledger)).rows}) -%}
    {%- endif -%}
    {{ return(shared.counted) }}
{%- endmacro -%}

{%- macro _counted_by_list(ledger) -%}
    {%- set lists = ['rejected_changes', 'stale_rows', 'sequence_ties', 'late_changes'] -%}
    select
        ledger.table_name,
        ledger.feed,
        max(ledger.landing_batch) as newest
        {%- for list in lists %},
        coalesce(max(gathered.{{ list }}), 0) as {{ list }}_watermark
        {%- for count in ['rejected', 'tied'] %},
        coalesce(
            sum(ledger.{{ count }}) filter (where ledger.landing_batch > coalesce(gathered.{{ list }}, 0)), 0
        ) as {{ list }}_{{ count }}
        {%- endfor %}
        {%- endfor %}
    from {{ ledger }} as ledger
    left join (
        select
            feed,
            table_name
            {%- for list in lists %},
            max(landing_batch) filter (where model = '{{ list }}') as {{ list }}
            {%- endfor %}
        from {{ highwater.gathered_batches() }}
        where table_name is not null
        group by feed, table_name
    ) as gathered
        on gathered.feed = ledger.feed and gathered.table_name = ledger.table_name
    group by ledger.table_name, ledger.feed
    order by ledger.table_name, ledger.feed
{%- endmacro -%}
