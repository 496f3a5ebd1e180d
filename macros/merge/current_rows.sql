{%- macro current_rows(merged, entity) -%}
    {%- set key = entity_key(entity) -%}
    {%- set truncates = entity_setting(entity, 'truncates', false) -%}
    {%- set may_outlive = truncates and entity_setting(entity, 'partial_images', false) -%}
    {%- set truncated_below -%}
(select coalesce(max(change_sequence_number), '') from {{ merged }} where is_pending and change_type = 'truncate')
    {%- endset -%}
    select
        {%- for column in entity_columns(entity) %}
        {%- set own_name = column.name.removeprefix('source_') %}
        {%- set is_renamed = own_name != column.name and own_name in reserved_columns() %}
        {%- if may_outlive and column.name not in key %}
        case
            when column_orders is null or column_orders['{{ column.name }}'].change_sequence_number >= {{ truncated_below }}
                then {{ column.name }}
        end as {{ own_name if is_renamed else column.name }}{{ ',' if not loop.last }}
        {%- else %}
        {{ column.name }}{{ ' as ' ~ own_name if is_renamed }}{{ ',' if not loop.last }}
        {%- endif %}
        {%- endfor %}
    from (
        select base.*
        from {{ merged }} as base
        left anti join (select {{ key | join(', ') }} from {{ merged }} where is_pending) as pending
            on
                {%- for column in key %}
                {{ 'and ' if not loop.first }}base.{{ column }} = pending.{{ column }}
                {%- endfor %}
        where not base.is_pending

        union all

        select * from {{ merged }}
        where is_pending
    )
    where
        not is_deleted
        {%- if truncates %}
        -- a truncate hides every row below it
        and change_sequence_number >= {{ truncated_below }}
        {%- endif %}
{%- endmacro -%}
