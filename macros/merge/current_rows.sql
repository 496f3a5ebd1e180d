{%- macro current_rows(merged, entity, publications=none, log=none) -%}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set truncates = highwater.entity_setting(entity, 'truncates', false) -%}
    {%- set may_outlive = truncates and highwater.entity_setting(entity, 'partial_images', false) -%}
    {%- set log = log or api.Relation.create(schema=merged.schema, identifier=entity ~ '_changes') -%}
    {%- set facts = highwater.facts_of_table(entity) if execute and not publications else {} -%}
    {%- set rule = highwater.built_model(entity ~ '_merged').config.meta.merged.compact_when if execute and not publications else none -%}
    {%- set base = highwater.base_as_known(merged, facts, rule) if execute and load_relation(merged) else none -%}
    {%- set is_plain = base and not publications and highwater._is_written_at_once(base, log, rule, facts) -%}
    {%- if base and not is_plain and base.held is none -%}
        {%- set base = highwater.base_as_known(merged, {}, rule) -%}
    {%- endif -%}
    {%- set rows = merged if is_plain else 'base_and_pending' -%}
    {%- if is_plain and truncates -%}
with

{{ highwater._truncates(merged, key, false) }}

{% elif not is_plain -%}
{{ highwater._base_and_pending(merged, log, entity, publications, base.held if base else 0) }}

{% endif -%}
select
        {%- for column in highwater.entity_columns(entity) %}
        {%- if may_outlive and column.name not in key %}
    if(
        `column orders` is null or `column orders`['{{ column.name }}'].change_sequence_number >= `truncated below`,
        `{{ column.name }}`,
        null
    ) as `{{ column.own_name }}`{{ ',' if not loop.last }}
        {%- else %}
    {{ highwater.as_own_name(column) }}{{ ',' if not loop.last }}
        {%- endif %}
        {%- endfor %}
    {%- if may_outlive %}
from (
    select
        *,
        -- those of rows that are above a truncate with columns from below it
        if(
            exists(map_values(column_orders), `each order` -> `each order`.change_sequence_number < `truncated below`),
            column_orders,
            null
        ) as `column orders`
    from {{ rows }}
    cross join truncates
)
    {%- else %}
from {{ rows }}
    {%- if truncates %}
cross join truncates
    {%- endif %}
    {%- endif %}
where
    not is_deleted
        {%- if truncates %}
    -- a truncate hides every row below it
    and change_sequence_number >= `truncated below`
        {%- endif %}
        {%- if publications %}
    and (select is_one_moment from cut)
        {%- endif %}
{%- endmacro -%}

{%- macro _base_and_pending(merged, log, entity, publications, written) -%}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set columns = highwater.merged_columns(entity) -%}
    {%- set truncates = highwater.entity_setting(entity, 'truncates', false) -%}
    {%- if written -%}
        {#- as a literal: files of the log and of the base that are older need not be opened -#}
        {%- set applied_batch = "(\n            select coalesce(max(log_batch), raise_error('" ~ merged.identifier ~ ' is older than the view of '
            ~ entity ~ '; run: highwater build --select ' ~ entity ~ "'))\n            from " ~ merged
            ~ '\n            where log_batch >= ' ~ written ~ '\n        )' -%}
    {%- else -%}
        {%- set applied_batch = '(select coalesce(max(log_batch), 0) from ' ~ merged ~ ')' -%}
    {%- endif -%}
    {%- set logged = '(select coalesce(max(log_batch), 0) from ' ~ log ~ ')' -%}
    {%- set published = logged if var('candidate', false) else
        "(select max_by(log_batches, publication)['" ~ entity ~ "'] from " ~ publications ~ ")" -%}
with

-- applied, and not in the base yet
pending as (

    select `{{ highwater.columns_of_change(entity) | join('`, `') }}`
    from {{ log }}
    where
        verdict = 'applied'
        and log_batch > {{ written }}
        and log_batch > {{ applied_batch }}
        {%- if publications %}
        -- before its first publication a table shows what it has
        and log_batch <= {{ published }}
        {%- endif %}

),

    {%- if truncates %}

{{ highwater._truncates(merged, key, true) }},
    {%- endif %}

latest as (

    {{ highwater.latest_change_per_key('pending', entity, merged) }}

),

base_and_pending as (

    select{{ highwater.broadcast_hint('pending_keys', 0) if not publications }}
        base.`{{ columns | join('`,\n        base.`') }}`
    from {{ merged }} as base
    left anti join (select `{{ key | join('`, `') }}` from pending) as pending_keys
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}base.`{{ column }}` = pending_keys.`{{ column }}`
            {%- endfor %}

    union all

    select
        `{{ columns | join('`,\n        `') }}`
    from latest

)
    {%- if publications %},

cut as (

    select
        -- the tables of one query may be of different moments: better no answer than half a publication
        case
            when coalesce(applied_batch <= published and published <= logged, true) then true
            else raise_error('{{ entity }}: a publication came while this query was planned. Run it again; if it says so each time: highwater build')
        end as is_one_moment
    from (
        select
            {{ applied_batch | indent(4) }} as applied_batch,
            {{ logged }} as logged,
            {{ published }} as published
    )

)
    {%- endif %}
{%- endmacro -%}

{%- macro _truncates(merged, key, with_pending) -%}
truncates as (

    select coalesce(max(change_sequence_number), '') as `truncated below`
    from (
        select change_sequence_number
        from {{ merged }}
        where {{ highwater.is_truncate(key) }}
        {%- if with_pending %}

        union all

        select change_sequence_number
        from pending
        where change_type = 'truncate'
        {%- endif %}
    )

)
{%- endmacro -%}

{%- macro _is_written_at_once(base, log, rule, facts) -%}
    {#- Then nothing is pending once a build is over, and the base is what there is to see. A view of a table that grows
        looks for more before it has to. -#}
    {%- if not load_relation(log) or rule != 'always' and (not rule.base_rows or base.rows * 2 > rule.base_rows) -%}
        {{ return(false) }}
    {%- elif facts and facts.log_batch <= base.applied -%}
        {{ return(true) }}
    {%- endif -%}
    {#- a build that was killed, or of the log alone -#}
    {{ return(not run_query(
        'select 1 from ' ~ log ~ " where verdict = 'applied' and log_batch > " ~ base.applied ~ ' limit 1'
    ).rows | length) }}
{%- endmacro -%}
