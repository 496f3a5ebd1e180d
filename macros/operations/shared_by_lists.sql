{%- macro shared_by_lists() -%}
    {#- One mapping a run of dbt: what the ledger has asked, the lists need not ask. -#}
    {{ return(graph.setdefault('highwater lists ' ~ invocation_id, {})) }}
{%- endmacro -%}
