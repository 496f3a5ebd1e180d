{%- macro parts_of_changes(parsed, entity) -%}
    {%- set key = highwater.key_columns(entity) -%}
    {%- if not key %}
    {#- no row has another key, so every record is one change #}
    select
        *,
        false as is_derived
    from {{ parsed }}
    {%- else %}
    select
        * except (image, change_type, part),
        case part
            when 'change' then image
            else map_filter(old_image, (field, value) -> field in ({{ highwater.quoted_texts(key | map(attribute='field')) }}))
        end as image,
        case part when 'change' then change_type else 'delete' end as change_type,
        part = 'old key' as is_derived
    from {{ parsed }}
    lateral view explode(
        case
            -- an update that moves the row to another key: the old key is deleted by the same record
            when change_type in ('insert', 'update')
                {%- for column in key %}
                and old_image[{{ highwater.sql_text(column.field) }}] is not null
                and image[{{ highwater.sql_text(column.field) }}] is not null
                {%- endfor %}
                and (
                    {%- for column in key %}
                    {{ 'or ' if not loop.first }}old_image[{{ highwater.sql_text(column.field) }}] <> image[{{ highwater.sql_text(column.field) }}]
                    {%- endfor %}
                )
                then array('change', 'old key')
            else array('change')
        end
    ) as part
    {%- endif %}
{%- endmacro -%}
