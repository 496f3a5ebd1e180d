{%- macro compact_pending(merged, entity, cause) -%}
    {%- set key = entity_key(entity) -%}
    {%- set ends = key_ends(entity) -%}
    {%- set rows = run_query('select ' ~ ends | join(', ') ~ ' from ' ~ merged ~ ' where is_pending').rows if ends else [] -%}
    {%- set bytes = run_query(
        'select sum(bytes) from (select distinct _metadata.file_path, _metadata.file_size as bytes from ' ~ merged
        ~ ' where is_pending)'
    ).rows[0][0] or 0 -%}
    merge into {{ merged }} as base
    {#- Spark would shuffle the base twice. Of what is in memory a file is a fraction. #}
    using (select{{ ' /*+ broadcast(pending) */' if bytes < 64 * 1024 * 1024 }} * from {{ merged }} as pending where is_pending) as change
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}base.{{ column }} = change.{{ column }}
            {%- endfor %}
            {%- for bound in key_bounds(entity, rows, 'base') %}
            and {{ bound }}
            {%- endfor %}
            -- always so; it stands in the history of the table, where `highwater status` finds it
            and change.feed <> 'compacted by {{ cause }}'
    when matched and not base.is_pending then update set
        {%- for column in merged_columns(entity) if column not in ('is_pending', 'is_new') %}
        {{ column }} = change.{{ column }}{{ ',' if not loop.last }}
        {%- endfor %}
    -- the pending row of a new key becomes its base row, every other pending row goes
    when matched and base.is_new then update set is_pending = false, is_new = false
    when matched then delete
{%- endmacro -%}
