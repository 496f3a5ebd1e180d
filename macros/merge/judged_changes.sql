{%- macro judged_changes(arrivals, standing, arriving) -%}
    {%- set key = entity_key(arriving.entity) -%}
    {%- set by_key -%}
        {%- for column in key %}ordered.{{ column }}{{ ', ' if not loop.last }}{% endfor -%}
    {%- endset -%}
    {%- set columns = entity_columns(arriving.entity) | map(attribute='name') | list + contract_columns() -%}
    {%- if is_incremental() and not arriving.rows %}
    -- nothing has arrived
    select * from {{ this }}
    where false
    {%- else %}
    with

    ordered as (

        select
            *,
            case when rejection_reason is null then {{ total_order(arrivals) }} end as change_order
        from {{ arrivals }}

    ),

    ranked as (

        select
            ordered.*,
            not coalesce({{ standing }}.is_merged, false) as is_new_key,
            row_number() over (
                partition by {{ by_key }}, ordered.landed_at, ordered.change_order
                order by ordered.feed, ordered.source_file, ordered.source_line
            ) as copy,
            -- the best of its batch, and the best there was before its batch
            max(ordered.change_order) over (
                partition by {{ by_key }}, ordered.landed_at
            ) as batch_order,
            greatest(
                {{ standing }}.standing_order,
                max(ordered.change_order) over (
                    partition by {{ by_key }}
                    order by unix_micros(ordered.landed_at)
                    range between unbounded preceding and 1 preceding
                )
            ) as order_before
        from ordered
        left join {{ standing }}
            on
                {%- for column in key %}
                {{ 'and ' if not loop.first }}ordered.{{ column }} = {{ standing }}.{{ column }}
                {%- endfor %}

    )

    select
        {%- for column in columns %}
        {{ column }},
        {%- endfor %}
        case
            when rejection_reason is not null then 'rejected'
            when copy > 1 or change_order <=> order_before then 'duplicate'
            when change_order < batch_order or change_order < order_before then 'superseded'
            else 'applied'
        end as verdict,
        -- decided by less than the sequence, in its batch or against what there was
        coalesce(
            change_order < batch_order and change_sequence_number = batch_order.change_sequence_number, false
        ) or coalesce(
            change_order <> order_before and change_sequence_number = order_before.change_sequence_number, false
        ) as is_tied,
        is_new_key,
        {{ arriving.log_batch }} as log_batch
    from ranked
    {%- endif %}
{%- endmacro -%}
