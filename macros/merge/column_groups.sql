{%- macro column_groups(arriving) -%}
    {%- if 'groups' in arriving -%}
        {{ return(arriving.groups) }}
    {%- endif -%}
    {%- set key = highwater.entity_key(arriving.entity) -%}
    {%- set values = highwater.entity_columns(arriving.entity) | map(attribute='name') | reject('in', key) | list -%}
    {%- set carried = {} -%}
    {%- for source in arriving.staged if source.batches | default([]) | map(attribute='partial_rows') | map('int') | sum -%}
        {%- for row in run_query(highwater._carried_by(source)).rows -%}
            {%- do carried.setdefault(row[0], []).append([source.feed, row[1] | string, row[2] | string]) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set groups = {} -%}
    {%- for column in values -%}
        {%- do groups.setdefault(carried.get(column, []) | string, []).append(column) -%}
    {%- endfor -%}
    {%- do arriving.update({'groups': groups.values() | list}) -%}
    {{ return(arriving.groups) }}
{%- endmacro -%}

{%- macro _carried_by(source) -%}
    select
        `carried column`,
        count(*),
        -- columns that the same sets of columns have come with add up to the same
        sum(cast(xxhash64(present_columns) as decimal(38, 0)))
    from (
        select distinct present_columns
        from {{ source.relation }}
        where landing_batch > {{ source.watermark }} and landing_batch <= {{ source.newest }} and present_columns is not null
    )
        lateral view explode(present_columns) as `carried column`
    group by `carried column`
{%- endmacro -%}
