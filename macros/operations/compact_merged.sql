{%- macro compact_merged(entity) -%}
    {%- set merged = _built_relation(entity ~ '_merged') -%}
    {%- set log = _built_relation(entity ~ '_changes') -%}
    {%- set published = _last_log_batch_shown(entity) -%}
    {%- do _take_over_layers(merged, entity) -%}
    {%- set due = due_compaction(merged, log, entity, published, 'highwater compact') -%}
    {%- if due.cause -%}
        {%- do run_query(_merge_into_base(merged, _latest_pending(merged, log, entity, due, published), entity, due)) -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _latest_pending(merged, log, entity, due, published) -%}
    (
        with changes as (
            {{ _applied_since(log, entity, due.taken_in, published) | indent(12) }}
        )
        {{ latest_change_per_key('changes', entity, merged) | indent(8) }}
    )
{%- endmacro -%}
