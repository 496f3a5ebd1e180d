{%- macro compact_pending(merged, entity, cause) -%}
    {%- set key = entity_key(entity) -%}
    merge into {{ merged }} as base
    using (select * from {{ merged }} where is_pending) as change
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}base.{{ column }} = change.{{ column }}
            {%- endfor %}
            -- always so; it stands in the history of the table, where `highwater status` finds it
            and base.feed <> 'compacted by {{ cause }}'
    when matched and not base.is_pending then update set
        {%- for column in merged_columns(entity) if column not in ('is_pending', 'is_new') %}
        {{ column }} = change.{{ column }}{{ ',' if not loop.last }}
        {%- endfor %}
    -- the pending row of a new key becomes its base row, every other pending row goes
    when matched and base.is_new then update set is_pending = false, is_new = false
    when matched then delete
{%- endmacro -%}
