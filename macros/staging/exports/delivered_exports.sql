{%- macro delivered_exports(raw_table, source_table) -%}
    {#- An export is a file, or the files of one folder with one position; without a position, the files of one entry of
        `_exports.yml`. One without a position that can be compared stands where the highest position of those stood that
        were taken before it. -#}
    {%- set positions = highwater.feed_setting(raw_table.identifier, 'positions') -%}
    select
        *,
        struct(
            coalesce(sequence, max(sequence) over (partition by source_table order by taken_at)) as sequence,
            taken_at,
            landing_batch,
            export
        ) as place
    from (
        select
            *,
            {%- if positions %}
            array_max(transform(
                split(source_position, ' [.][.] '),
                position -> {{ highwater.sequence_of_position('position', positions) | indent(16) }}
            )) as sequence
            {%- else %}
            cast(null as string) as sequence
            {%- endif %}
        from (
            select
                source_table,
                coalesce(
                    if(source_position is null, regexp_extract(source_file, '^[^/]*/[^/]*/', 0) || fields['export_entry'], null),
                    regexp_extract(source_file, '^[^/]*(/[^/]*){1,2}', 0)
                ) as export,
                source_position,
                max(coalesce(try_cast(fields['taken_at'] as timestamp), file_modified_at)) as taken_at,
                max(landing_batch) as landing_batch,
                array_sort(collect_list(struct(
                    source_file,
                    file_hash,
                    file_size,
                    file_modified_at,
                    landed_at,
                    fields['columns'] as columns,
                    fields['taken_at'] as declared_time,
                    fields['landed_position'] as landed_position,
                    fields['export_entry'] as export_entry
                ))) as parts,
                sum(file_records) as records
            from {{ raw_table }}
            where source_table = {{ highwater.sql_text(source_table) }} and entry = 'file'
            group by source_table, export, source_position
        )
    )
{%- endmacro -%}
