{%- macro changes_with_images(log, entity, arriving) -%}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set columns = highwater.columns_in_history(entity) -%}
    select{{ highwater.broadcast_hint('touched', arriving.rows) if arriving.rows }}
        struct({% for column in key %}log.`{{ column }}`{{ ', ' if not loop.last }}{% endfor %}) as key,
        struct(
            {%- for column in columns %}
            log.`{{ column.name }}`{{ ',' if not loop.last }}
            {%- endfor %}
        ) as image,
        {%- if highwater.entity_setting(entity, 'partial_images', false) %}
        log.present_columns,
        {%- endif %}
        log.change_sequence_number,
        log.is_deleted,
        log.change_hash,
        {{ highwater.effective_at(log, entity) | indent(8) }} as effective_at,
        log.log_batch
    from {{ log }} as log
    {%- if arriving.rows %}
    left semi join (
        select `{{ key | join('`, `') }}`
        from {{ log }}
        where log_batch > {{ arriving.watermark }}{{ highwater.up_to_log_batch(arriving.last) }} and verdict in ('applied', 'superseded')
        {%- if arriving.truncated %}
        union all
        -- what stood when the table was emptied
        select
            {%- for column in columns if column.name in key %}
            history.`{{ column.version_name }}`{{ ',' if not loop.last }}
            {%- endfor %}
        from {{ this }} as history
        left semi join (
            select
                change_sequence_number,
                {{ highwater.effective_at(log, entity) | indent(16) }} as effective_at
            from {{ log }}
            where
                log_batch > {{ arriving.watermark }}{{ highwater.up_to_log_batch(arriving.last) }}
                and verdict in ('applied', 'superseded')
                and change_type = 'truncate'
        ) as truncates
            on
                history.valid_from_sequence < truncates.change_sequence_number
                and (
                    history.valid_to_sequence is null
                    or history.valid_to_sequence > truncates.change_sequence_number
                    or history.valid_to > truncates.effective_at
                )
        {%- endif %}
    ) as touched
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}log.`{{ column }}` = touched.`{{ column }}`
            {%- endfor %}
    {%- endif %}
    where
        -- a copy says nothing new
        log.verdict in ('applied', 'superseded'){{ highwater.up_to_log_batch(arriving.last, 'log.') }}
        {%- if highwater.entity_setting(entity, 'truncates', false) %}
        and log.change_type <> 'truncate'
        {%- endif %}
        {%- if arriving.watermark is not none and not arriving.rows %}
        and false
        {%- do highwater.handed_on().update({'is_empty': true}) %}
        {%- endif %}
{%- endmacro -%}
