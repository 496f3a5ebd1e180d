{%- macro changes_of_shards(parsed, source, field, has_old_key=false) -%}
    {%- set name = highwater.sql_text(field) -%}
    {%- set in_records = highwater.feed_setting(source.feed, 'layout') == 'records' -%}
    {%- set shard = 'shard' if in_records else "split_part(source_file, '/', 2)" -%}
    {%- set images = ['image', 'old_image'] if has_old_key else ['image'] -%}
    select
        * except (problem, {{ images | join(', ') }}{{ ', shard' if in_records }}),
        case
            when problem is not null then problem
            -- a truncate of the table would hide the rows of the others
            when change_type = 'truncate' then concat('truncated_shard: it is a truncate of ', {{ shard }})
        end as problem,
        {%- for image in images %}
        map_concat(
            map_filter({{ image }}, (field, value) -> field <> {{ name }}), map({{ name }}, {{ shard }})
        ) as {{ image }}{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ parsed }}
{%- endmacro -%}
