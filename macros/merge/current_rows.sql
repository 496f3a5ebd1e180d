{%- macro current_rows(merged, entity) -%}
    {%- set key = entity_key(entity) -%}
    select
        {%- for column in entity_columns(entity) %}
        {%- set own_name = column.name.removeprefix('source_') %}
        {%- set is_renamed = own_name != column.name and own_name in reserved_columns() %}
        {{ column.name }}{{ ' as ' ~ own_name if is_renamed }}{{ ',' if not loop.last }}
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
    where not is_deleted
{%- endmacro -%}
