{%- macro purge_tombstones(entity, landed_before) -%}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set merged = highwater.built_relation(entity ~ '_merged') -%}
    {%- set taken_in = highwater.newest_log_batch(merged) -%}
    {%- do run_query(highwater._purge_statement(merged, highwater.built_relation(entity ~ '_changes'), key, taken_in, landed_before)) -%}
{%- endmacro -%}

{%- macro _purge_statement(merged, log, key, taken_in, landed_before) -%}
    merge into {{ merged }} as base
    using (
        select {{ highwater.quoted_names(key) }}
        from {{ merged }}
        where
            is_deleted
            and change_type <> 'truncate'
            and landed_at < timestamp '{{ landed_before }}'
            -- the newest batch says how far the log has been taken in
            and log_batch < {{ taken_in }}

        except

        -- what is pending stands on its base row
        select {{ highwater.quoted_names(key) }}
        from {{ log }}
        where log_batch > {{ taken_in }} and rejection_reason is null
    ) as purged
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}base.`{{ column }}` = purged.`{{ column }}`
            {%- endfor %}
    when matched then delete
{%- endmacro -%}
