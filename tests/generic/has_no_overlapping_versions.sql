{% test has_no_overlapping_versions(model, key, valid_from='valid_from', valid_to='valid_to') %}

with

versions as (

    select
        struct(`{{ key | join('`, `') }}`) as key,
        `{{ valid_from }}` as valid_from,
        `{{ valid_to }}` as valid_to,
        lead(`{{ valid_from }}`) over (
            partition by `{{ key | join('`, `') }}`
            order by `{{ valid_from }}` nulls first, `{{ valid_to }}` nulls last
        ) as next_valid_from
    from {{ model }}
    -- a version that never held is in nobody's way
    where `{{ valid_from }}` is distinct from `{{ valid_to }}`

),

classified as (

    select
        *,
        case
            when valid_from is null then 'has no begin'
            when valid_to < valid_from then 'ends before it begins'
            when valid_to is null and next_valid_from is not null then 'is open, and another one follows'
            when valid_to > next_valid_from then 'overlaps the next one'
        end as problem
    from versions

)

select * from classified
where problem is not null

{% endtest %}
