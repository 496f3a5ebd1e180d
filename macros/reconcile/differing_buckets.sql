{%- macro differing_buckets(lake, export, key, columns, buckets=highwater._buckets()) -%}
with

lake as (
    {{ highwater._bucket_sums(lake, 'lake', key, columns, buckets) }}
),

export as (
    {{ highwater._bucket_sums(export, 'export', key, columns, buckets) }}
),

compared as (

    select
        coalesce(lake.bucket, export.bucket) as bucket,
        coalesce(lake.row_count, 0) as lake_rows,
        coalesce(export.row_count, 0) as export_rows,
        not (
            lake.row_count <=> export.row_count
            and lake.high_bits <=> export.high_bits
            and lake.low_bits <=> export.low_bits
        ) as differs
    from lake
    full outer join export
        on lake.bucket = export.bucket

)

select * from compared
{%- endmacro -%}

{%- macro _buckets() -%}
    {#- More make the checksums dearer; with fewer more rows are compared where a few differ. -#}
    {{ return(16384) }}
{%- endmacro -%}

{%- macro _bucket_of_key(side, key, columns, buckets=highwater._buckets()) -%}
pmod(xxhash64(
    {%- for column in columns if column.name in key or not key -%}
    {{ highwater._hashable(column[side ~ '_by_rules'], column.data_type) }}{{ ', ' if not loop.last }}
    {%- endfor -%}
), {{ buckets }})
{%- endmacro -%}

{%- macro _bucket_sums(relation, side, key, columns, buckets) -%}
    select
        bucket,
        count(*) as row_count,
        -- sums of whole hashes overflow, and two overflows would be equal
        sum(shiftright(row_hash, 32)) as high_bits,
        sum(row_hash & 4294967295) as low_bits
    from (
        select
            {{ highwater._bucket_of_key(side, key, columns, buckets) }} as bucket,
            {{ highwater._row_hash(side, columns) | indent(8) }} as row_hash
        from {{ relation }}
    )
    group by bucket
{%- endmacro -%}

{%- macro _row_hash(side, columns) -%}
    xxhash64(
        {%- for column in columns %}
        {{ highwater._hashable(column[side], column.data_type) }},
        {%- endfor %}
        -- xxhash64 passes over NULLs, so where they are is hashed too
        {%- for chunk in columns | batch(60) %}
        {% for column in chunk -%}
        {{ 'if(`' ~ column.name ~ '` is null, ' ~ 2 ** loop.index0 ~ ', 0)' }}{{ ' + ' if not loop.last }}
        {%- endfor -%}
        {{ ',' if not loop.last }}
        {%- endfor %}
    )
{%- endmacro -%}

{%- macro _hashable(value, type) -%}
    {#- Inside nested values xxhash64 passes over NULLs as well; their text has them. -#}
    {%- if '<' in type -%}
to_json({{ value }}, map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS', 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'))
    {%- else -%}
{{ value }}
    {%- endif -%}
{%- endmacro -%}
