{% test has_versions_of_log(model, entity, tracked=none, ignored=[]) %}

-- noqa: disable=LT05
-- The lists of columns are long.
{{ config(enabled=var('audit', false), tags=['audit']) }}

{%- set log = highwater.relation_beside(model, entity ~ '_changes') -%}
{%- set last = highwater.newest_log_batch(model) if execute else none -%}
{%- set kept_for = highwater.entity_setting(entity, 'retention_days', {}).get('changes') -%}
{%- set names = highwater.columns_in_history(entity) | map(attribute='version_name') | list + highwater.validity_columns() -%}

with

changes as (

    {{ highwater.changes_with_images(log, entity, {'watermark': none, 'rows': 0, 'last': last}) | indent(4) }}

),

made_anew as (

    {{ highwater.row_versions('changes', log, entity, tracked, ignored, with_others=false, last=last) | indent(4) }}

),

kept as (

    {%- if kept_for %}
    -- what was before says nothing any more of where a version began
    select coalesce(max(change_sequence_number), '') as kept_since
    from {{ log }}
    where rejection_reason is null and landed_at < date_sub(current_date(), {{ kept_for }})
    {%- else %}
    select '' as kept_since
    {%- endif %}

),

versions as (

    select `{{ names | join('`, `') }}`
    from {{ model }}
    where valid_from_sequence > (select kept.kept_since from kept)

),

versions_of_log as (

    select `{{ names | join('`, `') }}`
    from made_anew
    where valid_from_sequence > (select kept.kept_since from kept)

)

select
    'is not in the log' as problem,
    struct(surplus.*) as found
from (
    select * from versions
    except all
    select * from versions_of_log
) as surplus

union all

select
    'is in the log alone' as problem,
    struct(missing.*) as found
from (
    select * from versions_of_log
    except all
    select * from versions
) as missing

{% endtest %}
