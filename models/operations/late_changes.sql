with

late as (

    {%- for table in tables_with_horizon() %}
    {%- if not loop.first %}

    union all
    {%- endif %}

    {{ late_changes(table.log, table.entity, table.horizon) }}
    {%- else %}

    -- no table declares how late a change may come
    select
        cast(null as string) as table_name,
        cast(null as string) as key_values,
        cast(null as string) as change_sequence_number,
        cast(null as string) as change_type,
        cast(null as string) as verdict,
        cast(null as string) as came_after,
        cast(null as string) as source_file,
        cast(null as int) as source_line,
        cast(null as string) as feed,
        cast(null as bigint) as landing_batch,
        cast(null as timestamp) as landed_at
    where false
    {%- endfor %}

)

select * from late
