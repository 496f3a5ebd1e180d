{%- macro standing_changes(arrivals, arriving) -%}
    {%- set key = entity_key(arriving.entity) -%}
    {%- set is_partial = entity_setting(arriving.entity, 'partial_images', false) -%}
    {%- set values = entity_columns(arriving.entity) | map(attribute='name') | reject('in', key) | list -%}
    {%- if not key -%}
    -- no key: nothing stands against a record
    select 1 as nothing where false
    {%- elif not arriving.standing -%}
    select
        {%- for column in key %}
        {{ column }},
        {%- endfor %}
        {%- if is_partial %}
        {%- for side in ['is_there', 'is_gone'] + values %}
        {{ total_order(arrivals) }} as order_of_{{ side }},
        {%- endfor %}
        {%- else %}
        {{ total_order(arrivals) }} as standing_order,
        {%- endif %}
        true as is_merged
    from {{ arrivals }}
    where false
    {%- else -%}
    select{{ broadcast_hint('arriving_keys', arriving.rows) }}
        {%- for column in key %}
        standing.{{ column }},
        {%- endfor %}
        {%- if is_partial %}
        {%- for side in ['is_there', 'is_gone'] + values %}
        max(standing.order_of_{{ side }}) as order_of_{{ side }},
        {%- endfor %}
        {%- else %}
        max({{ total_order('standing') }}) as standing_order,
        {%- endif %}
        max(standing.is_merged) as is_merged
    from (
        {%- for relation in arriving.standing %}
        {%- set is_merged = relation.where is none %}
        {%- if not loop.first %}
        union all
        {%- endif %}
        select
            {%- for column in key %}
            {{ column }},
            {%- endfor %}
            {%- if is_partial %}
            {%- for side in ['is_there', 'is_gone'] + values %}
            {{ order_of_side('held', side, is_merged) | indent(12) }} as order_of_{{ side }},
            {%- endfor %}
            {%- else %}
            change_sequence_number,
            is_deleted,
            change_hash,
            {%- endif %}
            {{ 'true' if is_merged else 'false' }} as is_merged
        from {{ relation.name }} as held
        {%- if relation.where is not none %}
        where {{ relation.where }}
        {%- else %}
        {%- for bound in key_bounds(arriving.entity, arriving.ends, 'held') %}
        {{ 'where' if loop.first else 'and' }} {{ bound }}
        {%- endfor %}
        {%- endif %}
        {%- endfor %}
    ) as standing
    -- the big table is read once, narrow, where its files may have the keys, and never shuffled
    left semi join (
        select {{ key | join(', ') }}
        from {{ arrivals }}
        where rejection_reason is null
    ) as arriving_keys
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}standing.{{ column }} = arriving_keys.{{ column }}
            {%- endfor %}
    group by
        {%- for column in key %}
        standing.{{ column }}{{ ',' if not loop.last }}
        {%- endfor %}
    {%- endif -%}
{%- endmacro -%}
