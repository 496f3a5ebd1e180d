{%- macro take_in_versions(history, versions, entity) -%}
    {%- set key = [] -%}
    {%- set others = [] -%}
    {%- set names_of_key = highwater.entity_key(entity) -%}
    {%- for column in highwater._columns_of_versions(entity) -%}
        {%- do (key if column.name in names_of_key else others).append(column.version_name) -%}
    {%- endfor -%}
    {%- set others = others + highwater._version_columns() | reject('equalto', 'valid_from_sequence') | list -%}
    {%- set columns = key + ['valid_from_sequence'] + others -%}
    {%- if highwater._is_marked(highwater._all_taken_in()) -%}
        {{ return("select 'nothing to take in'") }}
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

{%- macro _version_columns() -%}
    {{ return(['valid_from_sequence', 'valid_to_sequence', 'valid_from', 'valid_to', 'is_current', 'log_batch']) }}
{%- endmacro -%}

{%- macro _columns_of_versions(entity) -%}
    {#- Those of entity_columns, each with version_name, its name in the history. -#}
    {%- set columns = [] -%}
    {%- set names = highwater._version_names(highwater.entity_columns(entity) | map(attribute='own_name') | list) -%}
    {%- for column in highwater.entity_columns(entity) -%}
        {%- do columns.append(dict(column, version_name=names[loop.index0])) -%}
    {%- endfor -%}
    {{ return(columns) }}
{%- endmacro -%}

{%- macro _version_names(columns) -%}
    {#- As in the view, unless the history has a column of this name itself: then behind `source_`, as often as needed. -#}
    {%- set own = highwater._version_columns() -%}
    {%- set names = [] -%}
    {%- for name in columns -%}
        {%- set free = [] -%}
        {%- for times in range(1, columns | length + 1) if name in own and 'source_' * times ~ name not in columns -%}
            {%- do free.append('source_' * times ~ name) -%}
        {%- endfor -%}
        {%- do names.append((free + [name]) | first) -%}
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
            "a test of " ~ model ~ ": there is no " ~ name ~ " beside it. Build it first, or correct its name."
        ) }}
    {%- endif -%}
    {{ return(relation) }}
{%- endmacro -%}
