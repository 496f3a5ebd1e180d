{%- macro take_in(merged, changes, entity) -%}
    {%- if _all_taken_in() in model.compiled_code -%}
        {{ return("select 'nothing to take in'") }}
    {%- endif -%}
    {%- set cause = _due_with(merged, entity) -%}
    {%- set layer = 'base' if cause else 'pending' -%}
    merge into {{ merged }} as {{ layer }}
    using {{ changes }} as change
        on
            {%- if cause %}
            -- always so; it stands in the history of the table, where `highwater status` finds it
            base.feed <> 'compacted by {{ cause }}'
            {%- else %}
            -- confines the merge to the few pending files
            pending.is_pending
            {%- endif %}
            {%- for column in entity_key(entity) %}
            and {{ layer }}.`{{ column }}` = change.`{{ column }}`
            {%- endfor %}
    {%- if entity_setting(entity, 'partial_images', false) %}
    -- the change is folded with what was there
    when matched then update set
    {%- else %}
    when matched and {{ total_order('change') }} > {{ total_order(layer) }} then update set
    {%- endif %}
        {%- for column in merged_columns(entity) if column not in ('is_pending', 'is_new') %}
        `{{ column }}` = change.`{{ column }}`{{ ',' if not loop.last }}
        {%- endfor %}
    {%- if cause %}
    when not matched then insert (`{{ merged_columns(entity) | join('`, `') }}`)
    values (
        {{- _stays_pending(entity) }}, false
        {%- for column in merged_columns(entity) if column not in ('is_pending', 'is_new') %}, change.`{{ column }}`{% endfor -%}
    )
    {%- else %}
    when not matched then insert *
    {%- endif %}
{%- endmacro -%}

{%- macro _due_with(merged, entity) -%}
    {#- What makes a compaction due as soon as what arrives is taken in; none in a large table, where a MERGE with the base is dear. -#}
    {%- set rows = run_query('select count(*) from ' ~ merged).rows[0][0] | int -%}
    {%- if rows > 1000000 or _pending_rows(merged, entity) -%}
        {{ return('') }}
    {%- endif -%}
    {#- of the log, and not of the changes: one of each key is to be found among them only for the MERGE -#}
    {%- set log = adapter.get_relation(merged.database, merged.schema, entity ~ '_changes') -%}
    {%- set arriving = run_query(
        'select count(*) from ' ~ log ~ " where verdict = 'applied' and log_batch > " ~ newest_log_batch(merged)
    ).rows[0][0] | int -%}
    {{ return(_cause_of_compaction(_compaction_rule(), arriving, rows, none)) }}
{%- endmacro -%}
