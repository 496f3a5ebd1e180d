{% test has_agreeing_layers(model, key) %}

{%- set entity = model.identifier.removesuffix('_merged') -%}
{%- set log = highwater.relation_beside(model, entity ~ '_changes') %}
{#- a build looks at what it has written; asked for by itself, the test looks at every row -#}
{%- set facts = highwater.facts_of_table(entity) if execute and not var('audit', false) else {} -%}
{%- set is_partial = highwater.entity_setting(entity, 'partial_images', false) -%}
{%- set since = facts.merged_since | default(none) -%}
{#- a base that a build has not written is as the last one left it, which looked at it -#}
{%- set is_base_as_it_was = since is none and facts and env_var('HIGHWATER_FACTS_' ~ entity, '') != '' -%}
{#- truncates are no rows of a key; where all rows are looked at, one without a sequence is, whatever it is -#}
{%- set newer = "change_type <> 'truncate' and log_batch > " ~ since ~ ' and log_batch <= ' ~ facts.log_batch -%}
{%- set every = "change_type <> 'truncate' or change_sequence_number is null" -%}
{%- set pending = "change_type <> 'truncate' and log_batch > (select coalesce(max(base.log_batch), 0) from "
    ~ model ~ ' as base)' -%}
{#- what is above everything that was there was not compared with it, and is no older -#}
{%- set arrived = "change_type <> 'truncate' and log_batch > " ~ facts.since if facts.compared else 'false' %}

with

rows_of_layers as (

    select
        struct(`{{ key | join('`, `') }}`) as key,
        change_sequence_number,
        true as is_base
    from {{ model }}
    {%- if is_base_as_it_was and not facts.compared %}
    where false
    {%- elif is_base_as_it_was %}
    where (`{{ key | join('`, `') }}`) in (
        select `{{ key | join('`, `') }}`
        from {{ log }}
        where verdict = 'applied' and {{ arrived }}
    )
    {%- else %}
    where {{ newer if since is not none else every }}
    {%- endif %}

    union all

    select
        struct(`{{ key | join('`, `') }}`) as key,
        change_sequence_number,
        false as is_base
    from {{ log }}
    where
        verdict = 'applied'
        and {{ newer if since is not none else arrived if is_base_as_it_was else pending }}

),

layers as (

    select
        key,
        count_if(is_base) as base_rows,
        count_if(is_base and change_sequence_number is null) as unordered_rows,
        max(change_sequence_number) filter (where is_base) as base_sequence,
        max(change_sequence_number) filter (where not is_base) as log_sequence
    from rows_of_layers
    group by key

),

classified as (

    select
        *,
        case
            when base_rows > 1 then 'more than one base row'
            when unordered_rows > 0 then 'a base row without a sequence'
            {%- if since is not none %}
            when base_rows = 0 then 'what was applied is not in the base'
            {%- endif %}
            {%- if not is_partial and since is not none %}
            when log_sequence <> base_sequence then 'the base row is not the latest change'
            {%- elif not is_partial %}
            when log_sequence < base_sequence then 'what is pending is older than the base row'
            {%- endif %}
        end as problem
    from layers

)

select * from classified
where problem is not null

{% endtest %}
