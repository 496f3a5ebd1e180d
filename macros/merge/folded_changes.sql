{%- macro folded_changes(changes, entity, standing=none) -%}
    {%- set key = entity_key(entity) -%}
    {%- set values = entity_columns(entity) | map(attribute='name') | reject('in', key) | list -%}
    {%- set carried = _carried_columns(entity) -%}
    {%- set of_latest = carried | reject('in', key + values + ['is_deleted', 'log_batch']) | list -%}
    {%- set sides = ['is_there', 'is_gone'] + values -%}
    {#- a merged table that is built for the first time has nothing to fold with -#}
    {%- set has_standing = standing is not none and (is_incremental() or standing != this) -%}
    {%- set truncates = entity_setting(entity, 'truncates', false) -%}
    select
        is_pending,
        is_new,
        {%- for column in key %}
        {{ column }},
        {%- endfor %}
        {%- for column in values %}
        case when {{ _lives(column) }} then latest_{{ column }}.value end as {{ column }},
        {%- endfor %}
        {%- for column in of_latest %}
        latest.{{ column }},
        {%- endfor %}
        not coalesce(is_there > is_gone, is_there is not null) as is_deleted,
        log_batch,
        -- NULL: every column is as old as the row
        case
            when not (
                coalesce(is_there > is_gone, is_there is not null)
                {%- for column in values %}
                and latest_{{ column }}.change_order <=> is_there
                {%- endfor %}
            )
                then map_filter(
                    map(
                        {%- for column in values %}
                        '{{ column }}', latest_{{ column }}.change_order{{ ',' if not loop.last }}
                        {%- endfor %}
                    ),
                    (name, change_order) -> coalesce(change_order > is_gone, change_order is not null)
                )
        end as column_orders,
        is_gone as deleted_order,
        {%- for column in values %}
        {{ 'and ' if not loop.first }}{{ _lives(column) }}
        {%- endfor %} as is_complete
    from (
        select
            {%- for column in key %}
            {{ column }},
            {%- endfor %}
            bool_or(is_pending) as is_pending,
            bool_and(is_new) as is_new,
            max(log_batch) as log_batch,
            max_by(struct({{ of_latest | join(', ') }}), change_order) as latest,
            max(order_of_is_there) as is_there,
            {{ 'greatest(max(order_of_is_gone), max(truncated_order))' if truncates else 'max(order_of_is_gone)' }} as is_gone,
            {%- for column in values %}
            max_by(
                struct(order_of_{{ column }} as change_order, {{ column }} as value), order_of_{{ column }}
            ) as latest_{{ column }}{{ ',' if not loop.last }}
            {%- endfor %}
        from (
            {{- _sides_of(changes, changes, 'is_pending', 'is_new', carried, sides, false) }}
            {%- if has_standing %}

            union all

            -- what there is of the same keys, pending or base
            {{- _sides_of(standing ~ ' as held', 'held', 'true as is_pending', 'is_pending and is_new as is_new', carried, sides, true) }}
            left semi join {{ changes }}
                on
                    {%- for column in key %}
                    {{ 'and ' if not loop.first }}held.{{ column }} <=> {{ changes }}.{{ column }}
                    {%- endfor %}
            {%- endif %}
        )
        {%- if truncates %}
        -- a truncate deletes every key
        cross join (
            select max({{ total_order('truncates') }}) as truncated_order
            from (
                select change_sequence_number, is_deleted, change_hash
                from {{ changes }}
                where change_type = 'truncate'
                {%- if has_standing %}
                union all
                select change_sequence_number, is_deleted, change_hash
                from {{ standing }}
                where is_pending and change_type = 'truncate'
                {%- endif %}
            ) as truncates
        )
        {%- endif %}
        group by {{ key | join(', ') }}
    )
{%- endmacro -%}

{%- macro _lives(column) -%}
coalesce(latest_{{ column }}.change_order > is_gone, latest_{{ column }}.change_order is not null)
{%- endmacro -%}

{%- macro _sides_of(relation, alias, is_pending, is_new, carried, sides, is_folded) %}
            select
                {{ is_pending }},
                {{ is_new }},
                {%- for column in carried %}
                {{ alias }}.{{ column }},
                {%- endfor %}
                {%- for side in sides %}
                {{ order_of_side(alias, side, is_folded) | indent(16) }} as order_of_{{ side }},
                {%- endfor %}
                {{ total_order(alias) }} as change_order
            from {{ relation }}
{%- endmacro -%}
