{%- macro under_new_fields(parsed, columns, has_old_key=false, has_withheld=false) -%}
    {%- set images = ['image', 'old_image'] if has_old_key else ['image'] -%}
    select
        * except ({{ (images + (['withheld'] if has_withheld else [])) | join(', ') }}),
        -- what the source called otherwise before
        {%- for image in images %}
        {{ highwater._under_new_names(image, columns) | indent(8) }} as {{ image }}{{ ',' if not loop.last or has_withheld }}
        {%- endfor %}
        {%- if has_withheld %}
        transform(withheld, field -> case
            {%- for column in columns %}
            {%- for former in column.former_fields %}
            when field = {{ highwater.sql_text(former) }} then {{ highwater.sql_text(column.field) }}
            {%- endfor %}
            {%- endfor %}
            else field
        end) as withheld
        {%- endif %}
    from {{ parsed }}
{%- endmacro -%}

{%- macro _under_new_names(image, columns) -%}
    {%- set renamed = {'image': image} -%}
    {%- for column in columns -%}
        {%- set inner = renamed.image -%}
        {%- set expression -%}
get(transform(array({{ inner }}), image -> case
    when map_contains_key(image, {{ highwater.sql_text(column.field) }}) then image
    {%- for former in column.former_fields %}
    when map_contains_key(image, {{ highwater.sql_text(former) }})
        then transform_keys(image, (field, value) -> if(field = {{ highwater.sql_text(former) }}, {{ highwater.sql_text(column.field) }}, field))
    {%- endfor %}
    else image
end), 0)
        {%- endset -%}
        {%- do renamed.update({'image': expression}) -%}
    {%- endfor -%}
    {{ return(renamed.image) }}
{%- endmacro -%}
