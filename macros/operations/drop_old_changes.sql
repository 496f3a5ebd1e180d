{%- macro drop_old_changes(entity, landed_before) -%}
    {%- set log = highwater.built_relation(entity ~ '_changes') -%}
    {%- set is_old = highwater._is_old(entity, log, landed_before) -%}
    {%- if not highwater.entity_key(entity) -%}
        {%- do run_query('delete from ' ~ log ~ ' where ' ~ is_old) -%}
        {{ return('') }}
    {%- endif -%}
    {%- set merged = highwater.built_relation(entity ~ '_merged') -%}
    {%- set applied_batch = highwater.newest_log_batch(merged) -%}
    {%- set is_old = is_old ~ ' and log_batch <= ' ~ applied_batch -%}
    {%- do run_query(
        'delete from ' ~ log ~ ' where ' ~ is_old ~ " and (verdict = 'duplicate' or rejection_reason is not null)"
    ) -%}
    {%- do run_query(highwater._drop_statement(entity, log, merged, is_old)) -%}
{%- endmacro -%}

{%- macro _is_old(entity, log, landed_before) -%}
    {#- The newest batch of a feed says where to go on, and the ledger counts what it has not counted yet. -#}
    {%- set ends = run_query(
        'select newest.feed, newest.log_batch, coalesce(recorded.landing_batch, 0) from '
        ~ '(select feed, max(log_batch) as log_batch from ' ~ log ~ ' group by feed) as newest '
        ~ 'left join (select feed, max(landing_batch) as landing_batch from ' ~ highwater.built_relation('ledger')
        ~ " where table_name = '" ~ entity ~ "' group by feed) as recorded on newest.feed = recorded.feed order by 1"
    ).rows -%}
    landed_at < timestamp '{{ landed_before }}' and (
        {%- for feed, log_batch, landing_batch in ends -%}
        {{ ' or ' if not loop.first }}(feed = '{{ feed }}' and log_batch < {{ log_batch }} and landing_batch <= {{ landing_batch }})
        {%- else -%}
        false
        {%- endfor -%}
    )
{%- endmacro -%}

{%- macro _drop_statement(entity, log, merged, is_old) -%}
    {%- set key = highwater.entity_key(entity) -%}
    merge into {{ log }} as change
    using (
        select
            {%- for column in key %}
            ended.`{{ column }}`,
            {%- endfor %}
            ended.last_whole,
            -- a key that was deleted, whose tombstone is purged, of which nothing is younger
            ended.is_gone and ended.is_old and kept.is_kept is null as is_over
        from (
            select
                {%- for column in key %}
                `{{ column }}`,
                {%- endfor %}
                -- what is lower than an old whole row or delete says nothing any more, not even of the time of the young ones
                max(
                    case when {{ is_old }} and (is_deleted or present_columns is null) then {{ highwater.total_order('log') }} end
                ) as last_whole,
                max_by(is_deleted, {{ highwater.total_order('log') }}) as is_gone,
                bool_and({{ is_old }}) as is_old
            from {{ log }} as log
            where rejection_reason is null and change_type <> 'truncate'
            group by {{ highwater.quoted_names(key) }}
        ) as ended
        left join (select distinct {{ highwater.quoted_names(key) }}, true as is_kept from {{ merged }}) as kept
            on
                {%- for column in key %}
                {{ 'and ' if not loop.first }}ended.`{{ column }}` = kept.`{{ column }}`
                {%- endfor %}
    ) as latest
        on
            {%- for column in key %}
            change.`{{ column }}` = latest.`{{ column }}` and
            {%- endfor %}
            change.rejection_reason is null
            and {{ is_old }}
            and (latest.is_over or {{ highwater.total_order('change') }} < latest.last_whole)
    when matched then delete
{%- endmacro -%}
