{%- macro keep_watermarks_of_ledger(model_name, declaration='') -%}
    {#- The ledger does not change meanwhile: what it has is what was gathered. -#}
    {%- do run_query(
        'insert into ' ~ highwater.gathered_batches() ~ " replace where model = '" ~ model_name ~ "' select '" ~ model_name
        ~ "', feed, table_name, '" ~ declaration ~ "', max(landing_batch) from " ~ ref('ledger')
        ~ ' group by feed, table_name'
    ) -%}
{%- endmacro -%}
