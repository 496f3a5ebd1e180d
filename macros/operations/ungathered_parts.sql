{%- macro ungathered_parts(model_name) -%}
    {%- if adapter.get_relation(none, this.schema, ref('ledger').identifier) is none -%}
        {{ return([]) }}
    {%- endif -%}
    {#- A table that the project no longer declares has no log to query. -#}
    {%- set declared = highwater.tables_of_project() | map(attribute='entity') | list -%}
    {{ return(run_query(
        "select ledger.table_name, ledger.feed, coalesce(max(gathered.landing_batch), 0) as watermark,"
        ~ " max(ledger.landing_batch) as newest, sum(ledger.rejected) as rejected, sum(ledger.tied) as tied"
        ~ " from " ~ ref('ledger') ~ " as ledger left join " ~ highwater.gathered_batches() ~ " as gathered"
        ~ " on gathered.model = '" ~ model_name ~ "' and gathered.feed = ledger.feed"
        ~ " and gathered.table_name = ledger.table_name"
        ~ " where ledger.landing_batch > coalesce(gathered.landing_batch, 0)"
        ~ " group by ledger.table_name, ledger.feed order by 1, 2"
    ).rows | selectattr('table_name', 'in', declared) | list) }}
{%- endmacro -%}
