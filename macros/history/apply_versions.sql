{%- macro apply_versions(history, versions, entity) -%}
    {%- set key = [] -%}
    {%- set others = [] -%}
    {%- set names_of_key = highwater.entity_key(entity) -%}
    {%- for column in highwater.columns_in_history(entity) -%}
        {%- do (key if column.name in names_of_key else others).append(column.version_name) -%}
    {%- endfor -%}
    {%- set others = others + highwater.validity_columns() | reject('equalto', 'valid_from_sequence') | list -%}
    {%- set columns = key + ['valid_from_sequence'] + others -%}
    {%- if highwater.handed_on().is_empty -%}
        {{ return("select 'nothing to apply'") }}
    {%- endif -%}
    merge into {{ history }} as history
    using {{ versions }} as version
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}history.`{{ column }}` = version.`{{ column }}`
            {%- endfor %}
            and history.valid_from_sequence = version.valid_from_sequence
    -- a late change has moved the begin of a version
    when matched and version.is_current is null then delete
    -- what is as it was is not written again
    when matched
        and not (
            {%- for column in others %}
            {{ 'and ' if not loop.first }}history.`{{ column }}` <=> version.`{{ column }}`
            {%- endfor %}
        ) then update set
        {%- for column in others %}
        `{{ column }}` = version.`{{ column }}`{{ ',' if not loop.last }}
        {%- endfor %}
    when not matched and version.is_current is not null then insert
        (`{{ columns | join('`, `') }}`)
        values ({% for column in columns %}version.`{{ column }}`{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro -%}
