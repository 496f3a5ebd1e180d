{%- macro compact_pending(merged, entity, cause) -%}
    {%- set key = entity_key(entity) -%}
    {%- set rows_of_keys = " where is_pending" ~ (
        " and change_type <> 'truncate'" if entity_setting(entity, 'truncates', false) else ''
    ) -%}
    {%- set pending = run_query(
        'select ' ~ (['count(*) as pending_rows', 'count(distinct ' ~ key | join(', ') ~ ') as pending_keys'] + key_ends(entity))
        | join(', ') ~ ' from ' ~ merged ~ rows_of_keys
    ).rows -%}
    {%- if pending[0].pending_rows != pending[0].pending_keys -%}
        {{ exceptions.raise_compiler_error(
            merged ~ " was not compacted: " ~ pending[0].pending_rows ~ " pending rows have " ~ pending[0].pending_keys
            ~ " keys, and each key has one at the most. Somebody has written to the table. The test has_agreeing_layers "
            ~ "lists the keys; `highwater rebuild " ~ entity ~ "` writes the table again from its log."
        ) }}
    {%- endif -%}
    {#- A pending row hides its base row anyway, so the view shows the same rows before, between and after the two. -#}
    {%- do run_query(_delete_behind_pending(merged, entity, pending)) -%}
    update {{ merged }} set is_pending = false, is_new = false
    {{- rows_of_keys }}
        -- always so; it stands in the history of the table, where `highwater status` finds it
        and feed <> 'compacted by {{ cause }}'
{%- endmacro -%}

{%- macro _delete_behind_pending(merged, entity, pending) -%}
    {%- set key = entity_key(entity) -%}
    merge into {{ merged }} as base
    using (
        select{{ broadcast_hint('pending', pending[0].pending_rows | int) }} {{ key | join(', ') }}
        from {{ merged }} as pending
        where is_pending
    ) as pending
        on
            not base.is_pending
            {%- for column in key %}
            and base.{{ column }} = pending.{{ column }}
            {%- endfor %}
            {%- for bound in key_bounds(entity, pending, 'base') %}
            and {{ bound }}
            {%- endfor %}
    when matched then delete
{%- endmacro -%}
