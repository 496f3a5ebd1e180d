{% test has_agreeing_verdicts(model, entity) %}

-- noqa: disable=LT05
-- The lists of columns are long.
{{ config(enabled=var('audit', false), tags=['audit']) }}

{%- set key = highwater.entity_key(entity) -%}
{%- set retention = highwater.entity_setting(entity, 'retention_days', {}) -%}
{%- set truncates = highwater.entity_setting(entity, 'truncates', false) -%}
{#- Where more than order and arrival decide, only the highest change of a key is classified again; a change that came when the
    tombstone above it was purged is applied. -#}
{%- set is_partial = truncates or highwater.entity_setting(entity, 'partial_images', false) or retention.get('changes') -%}
{%- set excuses = (["verdict <> 'superseded' or change_order < highest_order"] if is_partial else [])
    + (["verdict = 'applied' and coalesce(not order_before.is_live, false)"] if retention.get('tombstones') else []) -%}
{%- set is_classified = key and not highwater.entity_setting(entity, 'insert_only', false) %}

with
{%- if is_classified %}

arrivals as (

    select
        struct(`{{ key | join('`, `') }}`) as key,
        {{ highwater.total_order('log') }} as change_order,
        dense_rank() over (
            partition by `{{ key | join('`, `') }}` order by log_batch asc, unix_micros(landed_at) asc
        ) as arrival,
        verdict,
        change_sequence_number,
        feed,
        source_file,
        source_line,
        landing_batch,
        log_batch
    from {{ model }} as log
    where rejection_reason is null and change_type <> 'truncate'

),

ranked as (

    select
        *,
        row_number() over (
            partition by key, arrival, change_order order by feed asc, source_file asc, source_line asc
        ) as ordinal,
        max(change_order) over (
            partition by key order by arrival asc range between current row and current row
        ) as batch_order,
        max(change_order) over (
            partition by key order by arrival asc range between unbounded preceding and 1 preceding
        ) as order_before,
        max(change_order) over (partition by key) as highest_order
    from arrivals

),

truncated as (

    select coalesce(max(change_sequence_number), '') as truncated_below
    from {{ model }}
    where rejection_reason is null and change_type = 'truncate'

),

classified as (

    select
        *,
        {{ excuses | join(' or ') or 'false' }} as is_excused,
        case
            when ordinal > 1 or change_order <=> order_before then 'duplicate'
            when change_order < batch_order or change_order < order_before then 'superseded'
            else 'applied'
        end as right_verdict
    from ranked
    -- what a truncate hides is superseded by it
    where change_sequence_number >= (select truncated.truncated_below from truncated)

),
{%- endif %}

found as (

    select
        case
            when (verdict = 'rejected') <> (rejection_reason is not null) then 'a rejected change has a reason, and no other'
            else 'has an order that is no text of sections, or no line'
        end as problem,
        verdict,
        cast(null as string) as right_verdict,
        change_sequence_number,
        feed,
        source_file,
        source_line,
        landing_batch,
        log_batch
    from {{ model }}
    where
        (verdict = 'rejected') <> (rejection_reason is not null)
        or not coalesce(source_line >= 1, false)
        or rejection_reason is null
        and not coalesce(change_sequence_number rlike '^[0-9a-f]{16}(/[0-9a-f]{16}){0,5}$', false)
    {%- if is_classified %}

    union all

    select
        'is not what its order and arrival make it' as problem,
        verdict,
        right_verdict,
        change_sequence_number,
        feed,
        source_file,
        source_line,
        landing_batch,
        log_batch
    from classified
    where verdict <> right_verdict and not is_excused
    {%- endif %}

)

select * from found

{% endtest %}
