{% test has_states_of_log(
    model,
    entity,
    valid_from='dbt_valid_from',
    valid_to='dbt_valid_to',
    updated_at='dbt_updated_at'
) %}

-- noqa: disable=LT05
-- The lists of columns are long.
{{ config(enabled=var('audit', false), tags=['audit']) }}

{%- set log = highwater.relation_beside(model, entity ~ '_changes') -%}
{%- set kept_for = highwater.entity_setting(entity, 'retention_days', {}).get('changes') -%}
{%- set columns = highwater.entity_columns(entity) or [{'name': 'at parse time', 'own_name': 'at parse time'}] -%}
{%- set own_key = highwater.names_of_key(entity) or {'at parse time': 'at parse time'} %}

with

versions as (

    select
        struct(`{{ own_key.keys() | join('`, `') }}`) as key,
        struct(`{{ columns | map(attribute='own_name') | join('`, `') }}`) as state,
        `{{ valid_from }}` as valid_from,
        `{{ valid_to }}` as valid_to,
        `{{ updated_at }}` as seen_at,
        lead(`{{ valid_from }}`) over (
            partition by `{{ own_key.keys() | join('`, `') }}`
            order by `{{ valid_from }}` asc, `{{ valid_to }}` asc nulls last
        ) as next_valid_from
    from {{ model }}

),

states as (

    select distinct
        struct(
            {%- for column in columns %}
            {{ highwater.as_own_name(column) }}{{ ',' if not loop.last }}
            {%- endfor %}
        ) as state
    from {{ log }}
    where verdict in ('applied', 'superseded') and not is_deleted

),

deletes as (

    select distinct
        struct(
            {%- for column in columns if column.own_name in own_key %}
            {{ highwater.as_own_name(column) }}{{ ',' if not loop.last }}
            {%- endfor %}
        ) as key
    from {{ log }}
    where verdict in ('applied', 'superseded') and is_deleted and change_type <> 'truncate'

),

compared as (

    select
        versions.*,
        states.state is not null as is_known,
        deletes.key is not null as was_deleted
    from versions
    left join states
        on versions.state <=> states.state
    left join deletes
        on versions.key = deletes.key

),

classified as (

    select
        *,
        case
            when valid_from is distinct from seen_at then 'begins at another time than it was seen'
            -- of partial images a build may have seen what later ones know better
            when
                not is_known and {{ 'false' if highwater.entity_setting(entity, 'partial_images', false) else 'true' }}
                then 'has a row that the log never had'
            when
                valid_to < next_valid_from
                and not was_deleted
                and {{ 'false' if highwater.entity_setting(entity, 'truncates', false) else 'true' }}
                then 'ends before the next one begins, and the log has no delete'
        end as problem
    from compared
    {%- if kept_for %}
    -- of older ones the log may have dropped the changes
    where valid_from > date_sub(current_date(), {{ kept_for }})
    {%- endif %}

)

select * from classified
where problem is not null

{% endtest %}
