{%- macro due_compaction(merged, log, entity, published, rule=none) -%}
    {#- What is pending, as far as it is published, and what makes its compaction due; without `cause` it waits. -#}
    {%- set is_build = published is none and not rule -%}
    {%- set facts = highwater.facts_of_table(entity) if is_build else {} -%}
    {%- set rule = rule or highwater._compaction_rule() -%}
    {%- set base = highwater.base_as_known(merged, facts, rule) -%}
    {%- set due = {'cause': '', 'applied_batch': base.applied, 'ends': {}} -%}
    {%- set left = namespace(rows=0) -%}
    {%- if not facts or facts.log_batch > base.applied -%}
        {%- set always = highwater._always_due(rule, base.rows) -%}
        {%- if facts and always and facts.get('since', base.applied + 1) <= base.applied -%}
            {#- all that is pending has come with this build, which knows it -#}
            {%- set left.rows = facts.arrived_rows -%}
            {%- do due.update({'cause': always, 'ends': facts.ends}) -%}
        {%- else -%}
            {%- set pending = highwater._pending(log, entity, base.applied, published) -%}
            {%- set left.rows = pending.pending_rows | int -%}
            {%- do due.update({'ends': highwater.ends_of_rows(entity, [pending])}) -%}
            {%- if pending.pending_batches | int -%}
                {%- do due.update({'cause': always or highwater._cause_of_compaction(rule, pending, base.rows)}) -%}
            {%- elif facts -%}
                {%- do facts.update({'applied': facts.log_batch}) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endif -%}
    {%- if due.cause and base.rows > highwater._rows_of_a_large_base() -%}
        {%- do highwater._begin_deletion_vectors(merged) -%}
    {%- endif -%}
    {%- if is_build -%}
        {%- do highwater.add_to_answer('pending', 0 if due.cause else left.rows) -%}
    {%- endif -%}
    {%- if facts -%}
        {%- do facts.update({'due': left.rows if due.cause else none}) -%}
    {%- endif -%}
    {{ return(due) }}
{%- endmacro -%}

{%- macro _pending(log, entity, applied_batch, published) -%}
    {{ return(run_query(
        'select ' ~ ([
            "count_if(change_type <> 'truncate') as pending_rows",
            'count(distinct log_batch) as pending_batches',
            'timestampdiff(second, min(landed_at), current_timestamp()) / 86400 as pending_days',
        ] + highwater.key_ends(entity)) | join(', ')
        ~ ' from ' ~ log ~ " where verdict = 'applied' and log_batch > " ~ applied_batch
        ~ highwater.up_to_log_batch(published)
    ).rows[0]) }}
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

{%- macro _always_due(rule, base_rows) -%}
    {%- if rule is string -%}
        {{ return(rule) }}
    {%- endif -%}
    {{ return('base_rows ' ~ rule.base_rows if rule.base_rows and base_rows <= rule.base_rows else '') }}
{%- endmacro -%}

{%- macro _cause_of_compaction(rule, pending, base_rows) -%}
    {%- set found = {
        'pending_rows': pending.pending_rows | int,
        'pending_batches': pending.pending_batches | int,
        'pending_days': pending.pending_days | float,
    } -%}
    {%- do found.update({'pending_percent': found.pending_rows * 100 / base_rows if base_rows else 100}) -%}
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
