{%- macro late_changes(log, entity, horizon) -%}
    select
        '{{ entity }}' as table_name,
        to_json(struct({{ entity_key(entity) | join(', ') }})) as key_values,
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
            feed,
            landed_at,
            max(batch_end) over (
                partition by feed
                order by unix_seconds(landed_at)
                range between unbounded preceding and {{ horizon * 24 * 60 * 60 }} preceding
            ) as came_after
        from (
            select
                feed,
                landed_at,
                max(change_sequence_number) as batch_end
            from {{ log }}
            where rejection_reason is null
            group by feed, landed_at
        )
    ) as ended
        on change.feed = ended.feed and change.landed_at = ended.landed_at
    where
        change.rejection_reason is null
        and change.change_sequence_number < ended.came_after
{%- endmacro -%}
