{%- macro folded_changes(changes, entity, current=none) -%}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set values = highwater.entity_columns(entity) | map(attribute='name') | reject('in', key) | list -%}
    {%- set of_latest = highwater.columns_of_change(entity) | reject('in', key + values + ['present_columns', 'is_deleted', 'log_batch']) | list -%}
    {#- a merged table that is built for the first time has nothing to fold with -#}
    {%- set has_current = current is not none and (current != this or is_incremental()) -%}
    {%- set truncates = highwater.entity_setting(entity, 'truncates', false) -%}
    {%- set names = "array('" ~ values | join("', '") ~ "')" if values else 'cast(array() as array<string>)' -%}
    select
        {%- for column in key %}
        `{{ column }}`,
        {%- endfor %}
        {%- for column in values %}
        get(`folded rows`, get(`living parts`, {{ loop.index0 }})['row number'])['{{ column }}'] as `{{ column }}`,
        {%- endfor %}
        {%- for column in of_latest %}
        `latest change`.`{{ column }}`,
        {%- endfor %}
        not `is alive` as is_deleted,
        log_batch,
        -- NULL: every column is as old as the row
        case
            when not `is alive` or exists(`living parts`, `each part` -> not `each part`.`order` <=> `order there`)
                then map_filter(
                    map_from_arrays({{ names }}, `living parts`.`order`), (`each column`, `its order`) -> `its order` is not null
                )
        end as column_orders,
        `order gone` as deleted_order,
        forall(`living parts`, `each part` -> `each part` is not null) as is_complete
    from (
        select
            *,
            coalesce(`order there` > `order gone`, `order there` is not null) as `is alive`,
            -- of each column the latest that is later than every delete, in the order of the columns
            case
                when exists(`folded rows`, `each row` -> `each row`.`column orders` is not null)
                    then transform(
                        {{ names }},
                        `each column` -> {{ highwater._living_part('coalesce(`each row`.`row order`, `each row`.`column orders`[`each column`])') | indent(24) }}
                    )
                else array_repeat({{ highwater._living_part('`each row`.`row order`') | indent(16) }}, {{ values | length }})
            end as `living parts`
        from (
            select
                {%- for column in key %}
                `{{ column }}`,
                {%- endfor %}
                max(log_batch) as log_batch,
                max_by(`latest change`, `change order`) as `latest change`,
                max(`order there`) as `order there`,
                {%- if truncates %}
                greatest(max(`order gone`), max(`truncated order`)) as `order gone`,
                {%- else %}
                max(`order gone`) as `order gone`,
                {%- endif %}
                collect_list(`folded row`) as `folded rows`
            from (
                -- of the changes that carry the same columns the latest says everything
                select
                    {%- for column in key %}
                    `{{ column }}`,
                    {%- endfor %}
                    max(log_batch) as log_batch,
                    max_by({{ highwater._struct_of_columns(of_latest, changes) | indent(20) }}, {{ highwater.total_order(changes) }}) as `latest change`,
                    max({{ highwater.total_order(changes) }}) as `change order`,
                    max({{ highwater.order_of_side(changes, 'is_there', false) }}) as `order there`,
                    max({{ highwater.order_of_side(changes, 'is_gone', false) }}) as `order gone`,
                    max_by(
                        {{ highwater._foldable_row(values, changes, 'present_columns is null', highwater.orders_of_present_columns(changes)) | indent(24) }},
                        {{ highwater.total_order(changes) }}
                    ) filter (where not is_deleted) as `folded row`
                from {{ changes }}
                group by `{{ key | join('`, `') }}`, present_columns
                {%- if has_current %}

                union all

                -- what there is of the same keys
                select
                    {%- for column in key %}
                    held.`{{ column }}`,
                    {%- endfor %}
                    held.log_batch,
                    {{ highwater._struct_of_columns(of_latest, 'held') | indent(20) }} as `latest change`,
                    {{ highwater.total_order('held') }} as `change order`,
                    {{ highwater.order_of_side('held', 'is_there', true) }} as `order there`,
                    {{ highwater.order_of_side('held', 'is_gone', true) }} as `order gone`,
                    {{ highwater._foldable_row(values, 'held', 'column_orders is null and not held.is_deleted', 'held.column_orders') | indent(20) }} as `folded row`
                from {{ current }} as held
                left semi join {{ changes }}
                    on
                        {%- for column in key %}
                        {{ 'and ' if not loop.first }}held.`{{ column }}` <=> {{ changes }}.`{{ column }}`
                        {%- endfor %}
                {%- endif %}
            )
            {%- if truncates %}
            -- a truncate deletes every key
            cross join (
                select max({{ highwater.total_order('truncates') }}) as `truncated order`
                from (
                    select change_sequence_number, is_deleted, change_hash
                    from {{ changes }}
                    where change_type = 'truncate'
                    {%- if has_current %}
                    union all
                    select change_sequence_number, is_deleted, change_hash
                    from {{ current }}
                    where {{ highwater.is_truncate(key) }}
                    {%- endif %}
                ) as truncates
            )
            {%- endif %}
            group by `{{ key | join('`, `') }}`
        )
    )
{%- endmacro -%}

{%- macro _living_part(order) -%}
array_max(filter(
    transform(`folded rows`, (`each row`, `row number`) -> struct({{ order }} as `order`, `row number` as `row number`)),
    `each part` -> coalesce(`each part`.`order` > `order gone`, `each part`.`order` is not null)
))
{%- endmacro -%}

{%- macro _struct_of_columns(columns, relation) -%}
struct({{ relation }}.`{{ columns | join('`, ' ~ relation ~ '.`') }}`)
{%- endmacro -%}

{%- macro _foldable_row(values, change, is_whole, column_orders) -%}
    {#- The values with their order: one of the row, or one of each column that it carries. -#}
struct(
    case when {{ change }}.{{ is_whole }} then {{ highwater.total_order(change) }} end as `row order`,
    {{ column_orders }} as `column orders`
    {%- for column in values %},
    {{ change }}.`{{ column }}`
    {%- endfor %}
)
{%- endmacro -%}
