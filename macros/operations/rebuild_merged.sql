{%- macro rebuild_merged(entity) -%}
    {%- set log = highwater.built_relation(entity ~ '_changes') -%}
    {%- set last = highwater.last_log_batch_shown(entity) -%}
    {%- set rows %}
        with changes as (
            select
                {%- for column in highwater.columns_of_change(entity) %}
                {%- if column == 'log_batch' %}
                -- all changes of the key are in the row: none of them is applied again
                max(log_batch) over (partition by {{ highwater.quoted_names(highwater.entity_key(entity)) }}) as log_batch
                {%- else %}
                `{{ column }}`
                {%- endif %}
                {{- ',' if not loop.last }}
                {%- endfor %}
            from {{ log }}
            where
                {%- if highwater.entity_setting(entity, 'insert_only', false) %}
                verdict = 'applied' -- whatever is higher: the row that came first stays
                {%- else %}
                rejection_reason is null
                {%- endif %}
                {%- if last is not none %}
                and log_batch <= {{ last }}
                {%- endif %}
        )
        {{ highwater.latest_change_per_key('changes', entity) }}
    {%- endset -%}
    {%- do highwater.rewrite_merged(entity, rows=rows) -%}
{%- endmacro -%}
