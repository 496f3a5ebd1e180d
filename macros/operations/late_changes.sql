{%- macro late_changes(part, horizon) -%}
    {%- set log = ref(project_name, part.table_name ~ '_changes') -%}
    select
        '{{ part.table_name }}' as table_name,
        {{ highwater.key_as_json(part.table_name) }} as key_values,
        change.change_sequence_number,
        change.change_type,
        change.verdict,
        ended.came_after,
        change.source_file,
        change.source_line,
        change.feed,
        change.landing_batch,
        change.landed_at
    from {{ log }} as change
    inner join (
        -- how far the feed had come {{ horizon }} days before each batch
        select
            landed_at,
            max(batch_end) over (
                order by unix_seconds(landed_at)
                range between unbounded preceding and {{ horizon * 24 * 60 * 60 }} preceding
            ) as came_after
        from (
            select
                landed_at,
                max(change_sequence_number) as batch_end
            from {{ log }}
            where feed = '{{ part.feed }}' and rejection_reason is null
            group by landed_at
        )
    ) as ended
        on change.landed_at = ended.landed_at
    where
        change.feed = '{{ part.feed }}'
        and change.landing_batch > {{ part.watermark }}
        and change.landing_batch <= {{ part.newest }}
        and change.rejection_reason is null
        and change.change_sequence_number < ended.came_after
{%- endmacro -%}
