{%- macro compact_when_due() -%}
    {%- if not execute -%}
        {{ return('') }}
    {%- endif -%}
    {%- set rule = config.get('meta', {}).get('merged', {}).get('compact_when') -%}
    {%- set parts = ['pending_rows', 'pending_percent', 'pending_days'] -%}
    {%- if rule != 'always' and (rule is not mapping or not rule or rule.keys() | reject('in', parts) | list) -%}
        {{ exceptions.raise_compiler_error(
            "compact_when of " ~ this.identifier ~ " is '" ~ rule ~ "'; it must be `always`, or a mapping of pending_rows "
            ~ "(a number), pending_percent (of the base) and pending_days (since the oldest landed), any of them."
        ) }}
    {%- endif -%}
    {%- set entity = this.identifier.removesuffix('_merged') -%}
    {%- set pending = run_query(
        'select count(*) from ' ~ this ~ ' where is_pending'
        ~ (" and change_type <> 'truncate'" if entity_setting(entity, 'truncates', false) else '')
    ).rows[0][0] | int -%}
    {%- if not pending -%}
        {{ return('') }}
    {%- endif -%}
    {#- without a condition Delta counts by its log and reads no file -#}
    {%- set base = (run_query('select count(*) from ' ~ this).rows[0][0] | int) - pending -%}
    {%- set found = {'pending_rows': pending, 'pending_percent': pending * 100 / base if base else 100} -%}
    {%- if rule is mapping and 'pending_days' in rule -%}
        {#- asked of the pending rows alone: the base has a time in every row -#}
        {%- set oldest = run_query(
            "select timestampdiff(second, min(landed_at), current_timestamp()) / 86400 from " ~ this
            ~ " where is_pending and change_type <> 'truncate'"
        ).rows[0][0] -%}
        {%- do found.update({'pending_days': oldest | float}) -%}
    {%- endif -%}
    {%- set reached = [] -%}
    {%- for part in parts if rule is mapping and part in rule and found[part] >= rule[part] -%}
        {%- do reached.append(part ~ ' ' ~ rule[part]) -%}
    {%- endfor -%}
    {%- if rule == 'always' or reached -%}
        {{ return(compact_pending(this, entity, reached | join(', ') or 'always')) }}
    {%- endif -%}
    {{ return('') }}
{%- endmacro -%}
