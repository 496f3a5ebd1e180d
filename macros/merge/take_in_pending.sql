{%- macro take_in_pending(merged, changes, entity) -%}
    {%- set key = entity_key(entity) -%}
    {%- if _all_taken_in() in model.compiled_code -%}
        {{ return("select 'nothing to take in'") }}
    {%- endif -%}
    merge into {{ merged }} as pending
    using {{ changes }} as change
        on
            -- confines the merge to the few pending files
            pending.is_pending
            {%- for column in key %}
            and pending.`{{ column }}` = change.`{{ column }}`
            {%- endfor %}
    {%- if entity_setting(entity, 'partial_images', false) %}
    -- the change is folded with what was there
    when matched then update set
    {%- else %}
    when matched and {{ total_order('change') }} > {{ total_order('pending') }} then update set
    {%- endif %}
        {%- for column in merged_columns(entity) if column not in ('is_pending', 'is_new') %}
        `{{ column }}` = change.`{{ column }}`{{ ',' if not loop.last }}
        {%- endfor %}
    when not matched then insert *
{%- endmacro -%}
