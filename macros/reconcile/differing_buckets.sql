{%- macro differing_buckets(lake, export, key, columns) -%}
with

lake as (
    {{ highwater._bucket_sums(lake, 'lake', key, columns) }}
),

export as (
    {{ highwater._bucket_sums(export, 'export', key, columns) }}
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

{%- macro _bucket_sums(relation, side, key, columns) -%}
    select
        bucket,
        count(*) as row_count,
        -- sums of whole hashes overflow, and two overflows would be equal
        sum(shiftright(row_hash, 32)) as high_bits,
        sum(row_hash & 4294967295) as low_bits
    from (
        select
            {{ highwater.bucket_of_key(side, key, columns) }} as bucket,
            {{ highwater.row_hash(side, columns) | indent(8) }} as row_hash
        from {{ relation }}
    )
    group by bucket
{%- endmacro -%}
