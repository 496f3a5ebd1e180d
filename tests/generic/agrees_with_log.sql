{% test agrees_with_log(model, entity) %}

-- noqa: disable=LT05
-- The lists of columns are long.
{{ config(enabled=var('audit', false), tags=['audit']) }}

{%- set key = highwater.entity_key(entity) or ['at parse time'] -%}
{%- set log = highwater.relation_beside(model, entity ~ '_changes') -%}
{%- set columns = highwater.columns_of_change(entity) | reject('in', key + ['present_columns', 'log_batch']) | list -%}
{%- set tombstones = highwater.entity_setting(entity, 'retention_days', {}).get('tombstones') %}

with

changes as (

    select
        `{{ highwater.columns_of_change(entity) | join('`,\n        `') }}`
    from {{ log }}
    where
        verdict = 'applied'
        -- what the table has not applied yet is for the next build
        and log_batch <= (select max(held.log_batch) from {{ model }} as held)

),

latest as (

    {{ highwater.latest_change_per_key('changes', entity) | indent(4) }}

),

-- what is below a truncate is hidden
truncated as (

    select coalesce(max(change_sequence_number), '') as truncated_below
    from changes
    where change_type = 'truncate'

),

said as (

    select
        struct(`{{ key | join('`, `') }}`) as key,
        struct(latest.`{{ columns | join('`, latest.`') }}`) as said_row,
        log_batch
    from latest
    where
        change_type <> 'truncate'
        and change_sequence_number >= (select truncated.truncated_below from truncated)

),

batches as (

    select
        struct(`{{ key | join('`, `') }}`) as key,
        max(log_batch) as last_batch
    from {{ log }}
    where rejection_reason is null
    group by `{{ key | join('`, `') }}`

),

held as (

    select
        struct(`{{ key | join('`, `') }}`) as key,
        struct(base.`{{ columns | join('`, base.`') }}`) as held_row,
        log_batch
    from {{ model }} as base
    where
        change_type <> 'truncate'
        and change_sequence_number >= (select truncated.truncated_below from truncated)

),

compared as (

    select
        coalesce(said.key, held.key) as key,
        said.said_row,
        held.held_row,
        said.log_batch as said_batch,
        held.log_batch as held_batch,
        batches.last_batch
    from said
    full outer join held
        on said.key = held.key
    left join batches
        on held.key = batches.key
    {%- if tombstones %}
    -- the tombstone is purged, and may have let an older change in
    where
        not (
            said.said_row.is_deleted
            and said.said_row.landed_at < date_sub(current_date(), {{ tombstones }})
            and (held.held_row is null or held.held_row.landed_at > said.said_row.landed_at)
        )
        or said.said_row is null
    {%- endif %}

),

classified as (

    select
        key,
        case
            when said_row is null then 'is not in the log'
            when held_row is null then 'is in the log alone'
            when not held_row <=> said_row then 'is not what the log says'
            -- a rebuild gives a row the last batch of its key
            when not held_batch between said_batch and last_batch then 'has a batch that the log does not have'
        end as problem,
        held_row,
        said_row
    from compared
    {%- if highwater.entity_setting(entity, 'truncates', false) %}

    union all

    select
        null as key,
        'has lost a truncate' as problem,
        null as held_row,
        null as said_row
    from truncated
    where
        truncated_below > (
            select coalesce(max(held.change_sequence_number), '')
            from {{ model }} as held
            where held.change_type = 'truncate'
        )
    {%- endif %}

)

select * from classified
where problem is not null

{% endtest %}
