{% test has_agreeing_layers(model, key) %}

{%- set entity = model.identifier.removesuffix('_merged') -%}
{%- set log = highwater.relation_beside(model, entity ~ '_changes') %}
{#- a build looks at what it has written; asked for by itself, the test looks at every row -#}
{%- set facts = highwater.facts_of_table(entity) if execute and not var('audit', false) else {} -%}
{%- set is_partial = highwater.entity_setting(entity, 'partial_images', false) -%}
{%- set since = facts.merged_since | default(none) -%}
{#- truncates are no rows of a key; where all rows are looked at, one without a sequence is, whatever it is -#}
{%- set of_keys = "change_type <> 'truncate' and log_batch > " -%}
{%- set newer = of_keys ~ since ~ ' and log_batch <= ' ~ facts.log_batch -%}
{%- set every = "change_type <> 'truncate' or change_sequence_number is null" -%}
{%- set pending = of_keys ~ '(select coalesce(max(base.log_batch), 0) from ' ~ model ~ ' as base)' -%}
{%- set arrived = of_keys ~ facts.since -%}
{%- set names = '`' ~ key | join('`, `') ~ '`' -%}
{%- set of_arrived = '(' ~ names ~ ') in (select ' ~ names ~ ' from ' ~ log
    ~ " where verdict = 'applied' and " ~ arrived ~ ')' -%}
{#- a base that a build has not written is as the last one left it; only what came out of order may be older -#}
{%- set looks_at = 'written' if since is not none else 'every' if not facts.is_handed_over
    else 'arrived' if facts.compared else 'none' -%}
{%- set in_base = {'written': newer, 'every': every, 'arrived': of_arrived, 'none': 'false'}[looks_at] -%}
{%- set in_log = {'written': newer, 'every': pending, 'arrived': arrived, 'none': 'false'}[looks_at] %}

with

rows_of_layers as (

    select
        struct(`{{ key | join('`, `') }}`) as key,
        change_sequence_number,
        true as is_base
    from {{ model }}
    where {{ in_base }}

    union all

    select
        struct(`{{ key | join('`, `') }}`) as key,
        change_sequence_number,
        false as is_base
    from {{ log }}
    where
        verdict = 'applied'
        and {{ in_log }}

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
