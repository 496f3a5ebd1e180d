{%- macro due_compaction(merged, log, entity, published, rule=none) -%}
    {#- What is pending, as far as it is published, and what makes its compaction due; without `cause` it waits. -#}
    {%- do highwater._take_over_layers(merged, entity) -%}
    {%- set rule = rule or highwater._compaction_rule() -%}
    {%- set base = highwater.rows_and_watermark(merged) -%}
    {%- set pending = run_query(
        'select ' ~ ([
            "count_if(change_type <> 'truncate') as pending_rows",
            'count(distinct log_batch) as pending_batches',
            'timestampdiff(second, min(landed_at), current_timestamp()) / 86400 as pending_days',
        ] + highwater.key_ends(entity)) | join(', ')
        ~ ' from ' ~ log ~ " where verdict = 'applied' and log_batch > " ~ base.log_batch
        ~ highwater.up_to_log_batch(published)
    ).rows[0] -%}
    {%- set due = {'cause': '', 'applied_batch': base.log_batch, 'ends': {}} -%}
    {%- for name in pending.keys() if name.startswith(('least ', 'greatest ')) -%}
        {%- do due.ends.update({name: pending[name] | string if pending[name] is not none else none}) -%}
    {%- endfor -%}
    {%- if pending.pending_batches | int -%}
        {%- do due.update({'cause': highwater._cause_of_compaction(rule, pending, base.rows)}) -%}
    {%- endif -%}
    {%- if due.cause and base.rows > highwater._rows_of_a_large_base() -%}
        {%- do highwater._begin_deletion_vectors(merged) -%}
    {%- endif -%}
    {%- if published is none -%}
        {%- do highwater.say_what_is_pending(entity, 0 if due.cause else pending.pending_rows | int) -%}
    {%- endif -%}
    {{ return(due) }}
{%- endmacro -%}

{%- macro _compaction_rule() -%}
    {%- set rule = config.get('meta', {}).get('merged', {}).get('compact_when') -%}
    {%- set parts = ['base_rows', 'pending_rows', 'pending_percent', 'pending_batches', 'pending_days'] -%}
    {%- if rule != 'always' and (rule is not mapping or not rule or rule.keys() | reject('in', parts) | list) -%}
        {{ exceptions.raise_compiler_error(
            "compact_when of " ~ this.identifier ~ " is '" ~ rule ~ "'; it must be `always`, or a mapping of base_rows "
            ~ "(a base of at most so many is written in every build), pending_rows (a number), pending_percent (of the base), "
            ~ "pending_batches (of the log) and pending_days (since the oldest landed), any of them."
        ) }}
    {%- endif -%}
    {{ return(rule) }}
{%- endmacro -%}

{%- macro _cause_of_compaction(rule, pending, base_rows) -%}
    {%- if rule is string -%}
        {{ return(rule) }}
    {%- endif -%}
    {%- set found = {
        'pending_rows': pending.pending_rows | int,
        'pending_batches': pending.pending_batches | int,
        'pending_days': pending.pending_days | float,
    } -%}
    {%- do found.update({'pending_percent': found.pending_rows * 100 / base_rows if base_rows else 100}) -%}
    {%- if rule.base_rows and base_rows <= rule.base_rows -%}
        {{ return('base_rows ' ~ rule.base_rows) }}
    {%- endif -%}
    {%- set reached = [] -%}
    {%- for part, value in found.items() if part in rule and value >= rule[part] -%}
        {%- do reached.append(part ~ ' ' ~ rule[part]) -%}
    {%- endfor -%}
    {{ return(reached | join(', ')) }}
{%- endmacro -%}

{%- macro _rows_of_a_large_base() -%}
    {#- Deletion vectors spare a larger base the rewriting of its files; a smaller one they cost more than that (decision 44). -#}
    {{ return(1000000) }}
{%- endmacro -%}

{%- macro _begin_deletion_vectors(merged) -%}
    {%- set property = 'delta.enableDeletionVectors' -%}
    {%- if 'true' not in run_query('show tblproperties ' ~ merged ~ " ('" ~ property ~ "')").rows[0].values() -%}
        {%- do run_query('alter table ' ~ merged ~ " set tblproperties ('" ~ property ~ "' = 'true')") -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _take_over_layers(merged, entity) -%}
    {#- Up to version 0.5 pending rows stood in this table, beside the base rows that they hide. -#}
    {%- if 'is_pending' not in adapter.get_columns_in_relation(merged) | map(attribute='name') -%}
        {{ return('') }}
    {%- endif -%}
    {%- set are_pending = "is_pending and change_type <> 'truncate'" -%}
    {%- if run_query('select count(*) from ' ~ merged ~ ' where ' ~ are_pending).rows[0][0] | int -%}
        {#- A pending row hides its base row anyway, so the views of that version show the same rows before, between and after the two. -#}
        {%- do run_query(highwater._delete_behind_pending(merged, entity, are_pending)) -%}
        {%- do run_query('update ' ~ merged ~ ' set is_pending = false, is_new = false where ' ~ are_pending) -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _delete_behind_pending(merged, entity, are_pending) -%}
    merge into {{ merged }} as base
    using (select `{{ highwater.entity_key(entity) | join('`, `') }}` from {{ merged }} where {{ are_pending }}) as pending
        on
            not base.is_pending
            {%- for column in highwater.entity_key(entity) %}
            and base.`{{ column }}` = pending.`{{ column }}`
            {%- endfor %}
    when matched then delete
{%- endmacro -%}
