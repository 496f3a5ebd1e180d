{%- macro compact_when_due() -%}
    {%- if not execute -%}
        {{ return('') }}
    {%- endif -%}
    {%- set rule = _compaction_rule() -%}
    {%- set entity = this.identifier.removesuffix('_merged') -%}
    {%- set pending = _pending_rows(this, entity) -%}
    {%- if not pending -%}
        {{ return('') }}
    {%- endif -%}
    {#- without a condition Delta counts by its log and reads no file -#}
    {%- set base = (run_query('select count(*) from ' ~ this).rows[0][0] | int) - pending -%}
    {%- set days = none -%}
    {%- if rule is mapping and 'pending_days' in rule -%}
        {#- asked of the pending rows alone: the base has a time in every row -#}
        {%- set days = run_query(
            "select timestampdiff(second, min(landed_at), current_timestamp()) / 86400 from " ~ this
            ~ " where is_pending and change_type <> 'truncate'"
        ).rows[0][0] | float -%}
    {%- endif -%}
    {%- set cause = _cause_of_compaction(rule, pending, base, days) -%}
    {{ return(compact_pending(this, entity, cause) if cause else '') }}
{%- endmacro -%}

{%- macro _compaction_rule() -%}
    {%- set rule = config.get('meta', {}).get('merged', {}).get('compact_when') -%}
    {%- if rule != 'always' and (
        rule is not mapping or not rule or rule.keys() | reject('in', ['pending_rows', 'pending_percent', 'pending_days']) | list
    ) -%}
        {{ exceptions.raise_compiler_error(
            "compact_when of " ~ this.identifier ~ " is '" ~ rule ~ "'; it must be `always`, or a mapping of pending_rows "
            ~ "(a number), pending_percent (of the base) and pending_days (since the oldest landed), any of them."
        ) }}
    {%- endif -%}
    {{ return(rule) }}
{%- endmacro -%}

{%- macro _pending_rows(merged, entity) -%}
    {{ return(run_query(
        'select count(*) from ' ~ merged ~ ' where is_pending'
        ~ (" and change_type <> 'truncate'" if entity_setting(entity, 'truncates', false) else '')
    ).rows[0][0] | int) }}
{%- endmacro -%}

{%- macro _cause_of_compaction(rule, pending, base, days) -%}
    {%- if rule == 'always' -%}
        {{ return('always') }}
    {%- endif -%}
    {%- set found = {
        'pending_rows': pending, 'pending_percent': pending * 100 / base if base else 100, 'pending_days': days,
    } -%}
    {%- set reached = [] -%}
    {%- for part, value in found.items() if part in rule and value is not none and value >= rule[part] -%}
        {%- do reached.append(part ~ ' ' ~ rule[part]) -%}
    {%- endfor -%}
    {{ return(reached | join(', ')) }}
{%- endmacro -%}
