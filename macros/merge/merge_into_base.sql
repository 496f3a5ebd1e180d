{%- macro merge_into_base(merged, changes, entity, due) -%}
    {%- set columns = highwater.merged_columns(entity) -%}
    merge into {{ merged }} as base
    using {{ changes }} as change
        on
            -- always so; it is in the history of the table, where `highwater status` finds it
            base.feed <> 'compacted by {{ due.cause }}'
            {%- for column in highwater.entity_key(entity) %}
            and base.`{{ column }}` = change.`{{ column }}`
            {%- endfor %}
            {%- for bound in highwater.key_bounds(entity, [due.ends], 'base') %}
            and {{ bound }}
            {%- endfor %}
    {%- if highwater.entity_setting(entity, 'partial_images', false) %}
    -- the change is folded with what was there
    when matched then update set
    {%- else %}
    when matched and {{ highwater.total_order('change') }} > {{ highwater.total_order('base') }} then update set
    {%- endif %}
        {%- for column in columns %}
        `{{ column }}` = change.`{{ column }}`{{ ',' if not loop.last }}
        {%- endfor %}
    when not matched then insert (`{{ columns | join('`, `') }}`)
    values (change.`{{ columns | join('`, change.`') }}`)
{%- endmacro -%}
