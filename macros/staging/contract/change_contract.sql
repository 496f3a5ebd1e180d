{%- macro change_contract(typed, feed, entity, has_parts=false, has_place=false) -%}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set truncates = highwater.entity_setting(entity, 'truncates', false) -%}
    {%- set ignores = highwater.feed_setting(feed, 'epochs', []) | selectattr('ignore', 'defined') | list -%}
    select
        typed.*,
        {%- if has_place %}
        case
            -- a row as it was read, and a truncate, have no ordinal among the changes of a key
            when is_snapshot or change_type = 'truncate' then change_sequence_number
            else concat(change_sequence_number, '/', ordinal)
        end as change_sequence_number,
        {%- else %}
        change_sequence_number,
        {%- endif %}
        change_type,
        change_type in ('delete', 'truncate') as is_deleted,
        changed_at,
        present_columns,
        {{ 'is_derived' if has_parts else 'false as is_derived' }},
        change_hash,
        source_file,
        source_line,
        {{ highwater.sql_text(feed) }} as feed,
        landing_batch,
        landed_at,
        rejection_reason,
        -- a problem is `code: what was found`
        coalesce(nullif(regexp_replace(problem, '^\\w+(: )?', ''), ''), case rejection_reason
            {%- if ignores %}
            when 'ignored' then 'an epoch of the feed says `ignore: true` of it'
            {%- endif %}
            when 'unknown_operation' then concat('operation is ', if(operation is null, 'absent', to_json(array(operation))))
            when 'unreadable_sequence' then concat('sequence is ', if(sequence is null, 'absent', to_json(array(sequence))))
            when 'unreadable_commit_time' then concat('commit time is ', to_json(array(commit_time)))
            when 'unknown_source' then concat('source is ', if(source_identity is null, 'absent', to_json(array(source_identity))))
            when 'partial_image' then concat('it carries only ', array_join(present_columns, ', '))
            when 'value_does_not_fit' then misfits
            {%- if key %}
            when 'null_key' then {{ highwater.sql_text('the key is ' ~ key | join(', ')) }}
            {%- endif %}
        end) as rejection_detail,
        case when rejection_reason is not null then record end as record
    from (
        select
            *,
            case
                when problem is not null then split_part(problem, ': ', 1)
                {%- if ignores %}
                when startswith(change_sequence_number, 'ignored/') then 'ignored'
                {%- endif %}
                when change_type is null then 'unknown_operation'
                {%- if not truncates %}
                when change_type = 'truncate' then 'unknown_operation'
                {%- endif %}
                when change_sequence_number is null then 'unreadable_sequence'
                when commit_time is not null and changed_at is null and change_type <> 'delete' then 'unreadable_commit_time'
                {%- if not highwater.entity_setting(entity, 'partial_images', false) %}
                when present_columns is not null then 'partial_image'
                {%- endif %}
                when misfits <> '' then 'value_does_not_fit'
                {%- if key %}
                when {{ "change_type <> 'truncate' and (" if truncates }}
                {%- for column in key %}typed.`{{ column }}` is null{{ ' or ' if not loop.last }}{% endfor -%}
                {{ ')' if truncates }} then 'null_key'
                {%- endif %}
            end as rejection_reason
        from {{ typed }}
    )
{%- endmacro -%}
