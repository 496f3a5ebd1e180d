{% test agrees_with_ledger(model, entity) %}

{{ config(enabled=var('audit', false), tags=['audit']) }}

{%- set ledger = highwater.relation_beside(model, 'ledger') %}

with

recorded as (

    select
        feed,
        landing_batch,
        applied,
        superseded,
        duplicate,
        rejected
    from {{ ledger }}
    where table_name = '{{ entity }}'

),

-- what the ledger has not counted yet is for the next build
watermarks as (

    select
        feed,
        max(landing_batch) as watermark
    from recorded
    group by feed

),

logged as (

    select
        log.feed,
        log.landing_batch,
        count_if(log.verdict = 'applied') as applied,
        count_if(log.verdict = 'superseded') as superseded,
        count_if(log.verdict = 'duplicate') as duplicate,
        count_if(log.verdict = 'rejected') as rejected
    from {{ model }} as log
    inner join watermarks
        on log.feed = watermarks.feed
    where not log.is_derived and log.landing_batch <= watermarks.watermark
    group by log.feed, log.landing_batch

),

compared as (

    select
        coalesce(recorded.feed, logged.feed) as feed,
        coalesce(recorded.landing_batch, logged.landing_batch) as landing_batch,
        coalesce(recorded.applied, 0) as applied,
        coalesce(logged.applied, 0) as applied_in_log,
        coalesce(recorded.superseded, 0) as superseded,
        coalesce(logged.superseded, 0) as superseded_in_log,
        coalesce(recorded.duplicate, 0) as duplicate,
        coalesce(logged.duplicate, 0) as duplicate_in_log,
        coalesce(recorded.rejected, 0) as rejected,
        coalesce(logged.rejected, 0) as rejected_in_log
    from recorded
    full outer join logged
        on recorded.feed = logged.feed and recorded.landing_batch = logged.landing_batch

)

select * from compared
where
    applied_in_log > applied
    or superseded_in_log > superseded
    or duplicate_in_log > duplicate
    or rejected_in_log > rejected
    {%- if not highwater.entity_setting(entity, 'retention_days', {}).get('changes') %}
    -- without a retention the log has all that was counted
    or applied_in_log + superseded_in_log + duplicate_in_log + rejected_in_log
    < applied + superseded + duplicate + rejected
    {%- endif %}

{% endtest %}
