{% test has_agreeing_layers(model, key) %}

{%- set entity = model.identifier.removesuffix('_merged') -%}
{%- set log = _relation_beside(model, entity ~ '_changes') %}

with

base as (

    select
        struct(`{{ key | join('`, `') }}`) as key,
        count(*) as base_rows,
        max(change_sequence_number) as base_sequence
    from {{ model }}
    -- truncates are no rows of a key
    where change_type <> 'truncate'
    group by `{{ key | join('`, `') }}`

),

pending as (

    select
        struct(`{{ key | join('`, `') }}`) as key,
        max(change_sequence_number) as pending_sequence
    from {{ log }}
    where
        verdict = 'applied'
        and change_type <> 'truncate'
        and log_batch > (select coalesce(max(taken_in.log_batch), 0) from {{ model }} as taken_in)
    group by `{{ key | join('`, `') }}`

),

layers as (

    select
        base.*,
        pending.pending_sequence,
        case
            when base.base_rows > 1 then 'more than one base row'
            {%- if not entity_setting(entity, 'partial_images', false) %}
            when pending.pending_sequence < base.base_sequence then 'what is pending is older than the base row'
            {%- endif %}
        end as problem
    from base
    left join pending
        on base.key = pending.key

)

select * from layers
where problem is not null

{% endtest %}
