{%- macro standing_changes(arrivals, arriving) -%}
    {%- set key = highwater.entity_key(arriving.entity) -%}
    {%- set is_partial = highwater.entity_setting(arriving.entity, 'partial_images', false) -%}
    {%- if not key -%}
    -- no key: there is nothing to compare a record with
    select 1 as nothing where false
    {%- elif not arriving.current -%}
    {%- set no_order = "struct('' as change_sequence_number, true as is_live, 0L as change_hash)" -%}
    -- there is nothing yet; the arrivals are not read for that
    select
        {%- for column in highwater.entity_columns(arriving.entity) if column.name in key %}
        cast(null as {{ column.data_type }}) as `{{ column.name }}`,
        {%- endfor %}
        {%- if is_partial %}
        {{ no_order }} as `order there`,
        {{ no_order }} as `order gone`
        {%- for group in highwater.column_groups(arriving) %},
        array({{ no_order }}) as `orders of {{ group[0] }}`
        {%- endfor %}
        {%- else %}
        {{ no_order }} as `current order`
        {%- endif %}
    where false
    {%- elif is_partial -%}
    select
        {%- for column in key %}
        `{{ column }}`,
        {%- endfor %}
        `order there`,
        `order gone`
        {%- for group in highwater.column_groups(arriving) %},
        case
            when size(`column orders`) = 0 then array(`order of whole rows`)
            else array_distinct(transform(
                array('{{ group | join("', '") }}'),
                `each column` -> greatest(
                    `order of whole rows`, array_max(transform(`column orders`, `each row` -> `each row`[`each column`]))
                )
            ))
        end as `orders of {{ group[0] }}`
        {%- endfor %}
    from (
        {{ highwater._current_of_keys(arrivals, arriving, key, is_partial) | indent(4) }}
    )
    {%- else -%}
    {{ highwater._current_of_keys(arrivals, arriving, key, is_partial) }}
    {%- endif -%}
{%- endmacro -%}

{%- macro _current_of_keys(arrivals, arriving, key, is_partial) -%}
    select{{ highwater.broadcast_hint('arriving_keys', arriving.rows) }}
        {%- for column in key %}
        current_rows.`{{ column }}`,
        {%- endfor %}
        {%- if is_partial %}
        max(current_rows.`order there`) as `order there`,
        max(current_rows.`order gone`) as `order gone`,
        max(current_rows.`order there`) filter (where current_rows.`column orders` is null) as `order of whole rows`,
        collect_list(current_rows.`column orders`) as `column orders`
        {%- else %}
        max({{ highwater.total_order('current_rows') }}) as `current order`
        {%- endif %}
    from (
        {%- for relation in arriving.current %}
        {%- set is_merged = relation.where is none %}
        {%- if not loop.first %}
        union all
        {%- endif %}
        select
            {%- for column in key %}
            `{{ column }}`,
            {%- endfor %}
            {%- if is_partial %}
            {{ highwater.order_of_side('held', 'is_there', is_merged) | indent(12) }} as `order there`,
            {{ highwater.order_of_side('held', 'is_gone', is_merged) | indent(12) }} as `order gone`,
            {{ 'column_orders' if is_merged else highwater.orders_of_present_columns('held') }} as `column orders`
            {%- else %}
            change_sequence_number,
            is_deleted,
            change_hash
            {%- endif %}
        from {{ relation.name }} as held
        {%- if relation.where is not none %}
        where {{ relation.where }}
        {%- else %}
        {%- for bound in highwater.key_bounds(arriving.entity, arriving.ends, 'held') %}
        {{ 'where' if loop.first else 'and' }} {{ bound }}
        {%- endfor %}
        {%- endif %}
        {%- endfor %}
    ) as current_rows
    -- the big table is read once, narrow, where its files may have the keys, and never shuffled
    left semi join (
        select `{{ key | join('`, `') }}`
        from {{ arrivals }}
        where rejection_reason is null
    ) as arriving_keys
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}current_rows.`{{ column }}` = arriving_keys.`{{ column }}`
            {%- endfor %}
    group by
        {%- for column in key %}
        current_rows.`{{ column }}`{{ ',' if not loop.last }}
        {%- endfor %}
{%- endmacro -%}
