{% test has_agreeing_layers(model, key) %}

{%- set entity = model.identifier.removesuffix('_merged') -%}
{%- set log = highwater.relation_beside(model, entity ~ '_changes') %}

with

-- truncates are no rows of a key; what has no sequence is looked at, whatever it is
rows_of_layers as (

    select
        struct(`{{ key | join('`, `') }}`) as key,
        change_sequence_number,
        true as is_base
    from {{ model }}
    where change_type <> 'truncate' or change_sequence_number is null

    union all

    select
        struct(`{{ key | join('`, `') }}`) as key,
        change_sequence_number,
        false as is_base
    from {{ log }}
    where
        verdict = 'applied'
        and change_type <> 'truncate'
        and log_batch > (select coalesce(max(base.log_batch), 0) from {{ model }} as base)

),

layers as (

    select
        key,
        count_if(is_base) as base_rows,
        count_if(is_base and change_sequence_number is null) as unordered_rows,
        max(change_sequence_number) filter (where is_base) as base_sequence,
        max(change_sequence_number) filter (where not is_base) as pending_sequence
    from rows_of_layers
    group by key

),

classified as (

    select
        *,
        case
            when base_rows > 1 then 'more than one base row'
            when unordered_rows > 0 then 'a base row without a sequence'
            {%- if not highwater.entity_setting(entity, 'partial_images', false) %}
            when pending_sequence < base_sequence then 'what is pending is older than the base row'
            {%- endif %}
        end as problem
    from layers

)

select * from classified
where problem is not null

{% endtest %}
