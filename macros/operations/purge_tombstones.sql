{%- macro purge_tombstones(entity, landed_before) -%}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set merged = highwater.built_relation(entity ~ '_merged') -%}
    {%- set applied_batch = highwater.newest_log_batch(merged) -%}
    {%- do run_query(highwater._purge_statement(merged, highwater.built_relation(entity ~ '_changes'), key, applied_batch, landed_before)) -%}
{%- endmacro -%}

{%- macro _purge_statement(merged, log, key, applied_batch, landed_before) -%}
    merge into {{ merged }} as base
    using (
        select {{ highwater.quoted_names(key) }}
        from {{ merged }}
        where
            is_deleted
            and change_type <> 'truncate'
            and landed_at < timestamp '{{ landed_before }}'
            -- the newest batch says how far the log has been applied
            and log_batch < {{ applied_batch }}

        except

        -- what is pending needs its base row
        select {{ highwater.quoted_names(key) }}
        from {{ log }}
        where log_batch > {{ applied_batch }} and rejection_reason is null
    ) as purged
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}base.`{{ column }}` = purged.`{{ column }}`
            {%- endfor %}
    when matched then delete
{%- endmacro -%}
