{%- macro take_in_versions(history, versions, entity) -%}
    {%- set key = [] -%}
    {%- set others = [] -%}
    {%- for column in entity_columns(entity) -%}
        {%- do (key if column.name in entity_key(entity) else others).append(_version_name(column.name)) -%}
    {%- endfor -%}
    {%- set others = others + _version_columns() | reject('equalto', 'valid_from_sequence') | list -%}
    {%- set columns = key + ['valid_from_sequence'] + others -%}
    {%- if _all_taken_in() in model.compiled_code -%}
        {{ return("select 'nothing to take in'") }}
    {%- endif -%}
    merge into {{ history }} as history
    using {{ versions }} as version
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}history.{{ column }} = version.{{ column }}
            {%- endfor %}
            and history.valid_from_sequence = version.valid_from_sequence
    -- a late change has moved the begin of a version
    when matched and version.is_current is null then delete
    -- what is as it was is not written again
    when matched
        and not (
            {%- for column in others %}
            {{ 'and ' if not loop.first }}history.{{ column }} <=> version.{{ column }}
            {%- endfor %}
        ) then update set
        {%- for column in others %}
        {{ column }} = version.{{ column }}{{ ',' if not loop.last }}
        {%- endfor %}
    when not matched and version.is_current is not null then insert
        ({{ columns | join(', ') }})
        values ({% for column in columns %}version.{{ column }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro -%}

{%- macro _version_columns() -%}
    {{ return(['valid_from_sequence', 'valid_to_sequence', 'valid_from', 'valid_to', 'is_current', 'log_batch']) }}
{%- endmacro -%}

{%- macro _version_name(column) -%}
    {#- As in the view, unless the history has a column of this name itself. -#}
    {%- set name = own_name(column) -%}
    {{ return('source_' ~ name if name in _version_columns() else name) }}
{%- endmacro -%}

{%- macro _version_names(columns) -%}
    {%- set names = [] -%}
    {%- for column in columns -%}
        {%- do names.append(_version_name(column)) -%}
    {%- endfor -%}
    {{ return(names) }}
{%- endmacro -%}

{%- macro _relation_beside(model, name) -%}
    {%- if not execute -%}
        {{ return(model) }}
    {%- endif -%}
    {%- set relation = adapter.get_relation(model.database, model.schema, name) -%}
    {%- if not relation -%}
        {{ exceptions.raise_compiler_error(
            "has_current_rows_of of " ~ model ~ ": there is no " ~ name ~ " beside it. Build it first, or correct its name."
        ) }}
    {%- endif -%}
    {{ return(relation) }}
{%- endmacro -%}
