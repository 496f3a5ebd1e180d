{%- macro compact_merged(entity) -%}
    {%- set merged = highwater.built_relation(entity ~ '_merged') -%}
    {%- set log = highwater.built_relation(entity ~ '_changes') -%}
    {%- set published = highwater.last_log_batch_shown(entity) -%}
    {%- set due = highwater.due_compaction(merged, log, entity, published, 'highwater compact') -%}
    {%- if due.cause -%}
        {%- do run_query(highwater.merge_into_base(merged, highwater._latest_pending(merged, log, entity, due, published), entity, due)) -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _latest_pending(merged, log, entity, due, published) -%}
    (
        with changes as (
            {{ highwater.applied_since(log, entity, due.applied_batch, published) | indent(12) }}
        )
        {{ highwater.latest_change_per_key('changes', entity, merged) | indent(8) }}
    )
{%- endmacro -%}
