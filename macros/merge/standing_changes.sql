{%- macro standing_changes(arrivals, arriving) -%}
    {%- set key = entity_key(arriving.entity) -%}
    {%- if not arriving.standing -%}
    select
        {{ key | join(', ') }},
        {{ total_order(arrivals) }} as standing_order,
        true as is_merged
    from {{ arrivals }}
    where false
    {%- else -%}
    select{{ broadcast_hint('arriving_keys', arriving.rows) }}
        {%- for column in key %}
        standing.{{ column }},
        {%- endfor %}
        max({{ total_order('standing') }}) as standing_order,
        max(standing.is_merged) as is_merged
    from (
        {%- for relation in arriving.standing %}
        {%- if not loop.first %}
        union all
        {%- endif %}
        select
            {{ key | join(', ') }},
            change_sequence_number,
            is_deleted,
            change_hash,
            {{ 'true' if relation.where is none else 'false' }} as is_merged
        from {{ relation.name }}
        {%- if relation.where is not none %}
        where {{ relation.where }}
        {%- endif %}
        {%- endfor %}
    ) as standing
    -- the big table is read once, narrow, and never shuffled
    inner join (
        select distinct {{ key | join(', ') }}
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
