{%- macro compact_when_due() -%}
    {%- if not execute -%}
        {{ return('') }}
    {%- endif -%}
    {%- set rule = config.get('meta', {}).get('merged', {}).get('compact_when') -%}
    {%- set allowed = "`always`, or a mapping of pending_rows (a number), pending_percent (of the base), or both" -%}
    {%- if rule != 'always' and (
        rule is not mapping or not rule or rule.keys() | reject('in', ['pending_rows', 'pending_percent']) | list
    ) -%}
        {{ exceptions.raise_compiler_error(
            "compact_when of " ~ this.identifier ~ " is '" ~ rule ~ "'; it must be " ~ allowed ~ "."
        ) }}
    {%- endif -%}
    {%- set rows = run_query(
        'select is_pending, count(*) from ' ~ this
        ~ (" where change_type <> 'truncate'" if entity_setting(this.identifier.removesuffix('_merged'), 'truncates', false) else '')
        ~ ' group by is_pending'
    ).rows -%}
    {%- set counts = namespace(pending=0, base=0) -%}
    {%- for row in rows -%}
        {%- if row[0] -%}{%- set counts.pending = row[1] | int -%}
        {%- else -%}{%- set counts.base = row[1] | int -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if counts.pending > 0 and (
        rule == 'always'
        or ('pending_rows' in rule and counts.pending >= rule.pending_rows)
        or ('pending_percent' in rule and counts.pending * 100 >= rule.pending_percent * counts.base)
    ) -%}
        {{ return(compact_pending(this, this.identifier.removesuffix('_merged'))) }}
    {%- endif -%}
    {{ return('') }}
{%- endmacro -%}
