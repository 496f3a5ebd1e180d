{%- macro typed_columns(delivered, entity, binary_encoding='base64', has_present=false, has_withheld=false) -%}
    {%- set columns = highwater.entity_columns(entity) -%}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set is_partial = highwater.entity_setting(entity, 'partial_images', false) -%}
    {%- set typed_names = columns | rejectattr('data_type', 'eq', 'string') | map(attribute='name') | list -%}
    {%- set later = columns | selectattr('came_later') | map(attribute='name') | list -%}
    {%- set first = columns | map(attribute='name') | reject('in', later) | list -%}
    {%- set key_ordinals = [] -%}
    {%- for name in typed_names if name in key -%}
        {%- do key_ordinals.append(typed_names.index(name)) -%}
    {%- endfor -%}
    select
        *,
        case
            when size(array_compact(misfit_texts)) > 0 then concat_ws(' and ', transform(
                misfit_texts,
                (misfit, ordinal) -> case
                    -- a delete is told by its key, whatever else it carries
                    when misfit is not null and (not change_type <=> 'delete'
                    {{- ' or ordinal in (' ~ key_ordinals | join(', ') ~ ')' if key_ordinals }})
                        then concat(
                            get({{ highwater._of_types(1) }}, ordinal), ' = ', to_json(array(misfit)), ' does not fit ', get({{ highwater._of_types(2) }}, ordinal)
                        )
                end
            ))
            else ''
        end as misfits,
        -- xxhash64 passes over NULLs, so where they are is hashed too
        xxhash64(
            change_type,
            typed,
            {%- if is_partial %}
            array_join(present_columns, ','),
            {%- endif %}
            {%- if later %}
            transform(array(text.`{{ first | join('`, text.`') }}`), value -> value is null),
            -- of columns that came later where there is a value: records from before keep their hash
            array({% for name in later %}if(text.`{{ name }}` is null, null, {{ highwater.sql_text(name) }}){{ ', ' if not loop.last }}{% endfor %})
            {%- else %}
            transform(array(text.*), value -> value is null)
            {%- endif %}
        ) as change_hash
    from (
        select
            *,
            {%- if has_present %}
            {{ highwater._present_columns(columns) | indent(12) }} as present_columns,
            {%- else %}
            cast(null as array<string>) as present_columns,
            {%- endif %}
            struct(
                {%- for column in columns %}
                {{ highwater.typed_value('text.`' ~ column.name ~ '`', column.data_type, binary_encoding) }}
                {{- ' as `' ~ column.name ~ '`' if column.data_type != 'string' }}{{ ',' if not loop.last }}
                {%- endfor %}
            ) as typed,
            array(
                {%- for column in columns if column.data_type != 'string' %}
                {%- set text = 'text.`' ~ column.name ~ '`' %}
                if({{ highwater.fits_type(text, 'typed.`' ~ column.name ~ '`', column.data_type, binary_encoding) }}, null, {{ text }})
                {{- ',' if not loop.last }}
                {%- else %}
                cast(null as string)
                {%- endfor %}
            ) as misfit_texts
        from {{ highwater._with_carried_fields(delivered, columns, is_partial, has_withheld) | indent(12) if has_present else delivered }}
    )
{%- endmacro -%}

{%- macro _of_types(group) -%}
    {#- names (1) or types (2) of the columns that are no texts: their type has both -#}
regexp_extract_all(typeof(typed), '[<,]([^<,:]+):(?!string)([a-z_]+([(]\\d+,\\d+[)])?)', {{ group }})
{%- endmacro -%}

{%- macro _with_carried_fields(delivered, columns, is_partial, has_withheld) -%}
    {%- set fields = highwater.quoted_texts(columns | map(attribute='field')) -%}
    {%- set later = columns | selectattr('came_later') | map(attribute='field') | list -%}
(
    select
        *,
        {%- if later %}
        case
            when image is not null then filter(
                array({{ fields }}),
                field -> map_contains_key(image, field) or (
                    -- a record from before the column came: its row has NULL there
                    field in ({{ highwater.quoted_texts(later) }})
                    {%- if is_partial or not has_withheld %}
                    -- an update without it may be one that does not change it
                    and change_type = 'insert'
                    {%- endif %}
                    {%- if has_withheld %}
                    and not coalesce(array_contains(withheld, field), false)
                    {%- endif %}
                )
            )
        end as carried
        {%- else %}
        array_intersect(array({{ fields }}), map_keys(image)) as carried
        {%- endif %}
    from {{ delivered }}
)
{%- endmacro -%}

{%- macro _present_columns(columns) -%}
    {%- set fields = columns | map(attribute='field') | list -%}
    {%- set names = columns | map(attribute='name') | list -%}
-- NULL: the whole row; a delete needs its key only
case
    when change_type in ('insert', 'update') and carried is not null and size(carried) < {{ fields | length }}
    {%- if names == fields %}
        then carried
    {%- elif names == fields | map('lower') | list %}
        then transform(carried, field -> lower(field))
    {%- else %}
        then transform(carried, field -> get(
            array({{ highwater.quoted_texts(names) }}), int(array_position(array({{ highwater.quoted_texts(fields) }}), field)) - 1
        ))
    {%- endif %}
end
{%- endmacro -%}
