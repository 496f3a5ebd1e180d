{%- macro delivered_exports(raw_table, source_table) -%}
    {#- An export is a file, or the files of one folder with one position. One without a position that can be compared
        stands where the highest position of those stood that were taken before it. -#}
    {%- set positions = highwater.feed_setting(raw_table.identifier, 'positions') -%}
    {%- set end = "element_at(split(source_position, ' [.][.] '), -1)" -%}
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
            {{ (highwater.sequence_of_position(end, positions) if positions else 'cast(null as string)') | indent(12) }} as sequence
        from (
            select
                source_table,
                regexp_extract(source_file, '^[^/]*(/[^/]*){1,2}', 0) as export,
                source_position,
                max(coalesce(try_cast(fields['taken_at'] as timestamp), file_modified_at)) as taken_at,
                max(landing_batch) as landing_batch,
                array_sort(collect_list(struct(source_file, file_hash, file_size))) as parts,
                sum(file_records) as records
            from {{ raw_table }}
            where source_table = {{ highwater.sql_text(source_table) }} and entry = 'file'
            group by source_table, export, source_position
        )
    )
{%- endmacro -%}
