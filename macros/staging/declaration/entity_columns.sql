{%- macro entity_columns(entity) -%}
    {#- At parse time there is no graph yet; nothing is compiled from what is returned then. -#}
    {%- if not execute -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set declaration = highwater.entity_declaration(entity) -%}
    {%- set stored = highwater.stored_columns() -%}
    {%- set columns = [] -%}
    {%- for column in declaration.columns.values() if column.data_type -%}
        {%- set meta = column.config.get('meta', {}) -%}
        {%- set field = meta.get('field', column.name) -%}
        {%- if column.name in stored -%}
            {{ exceptions.raise_compiler_error(
                entity ~ "_changes declares a column '" ~ column.name ~ "', which the project stores beside "
                ~ "the columns of a table. Name it source_" ~ column.name ~ ", with `config: {meta: {field: "
                ~ column.name ~ "}}`; the mart gives it its name back."
            ) }}
        {%- elif not modules.re.fullmatch('\\w+', column.name) -%}
            {{ exceptions.raise_compiler_error(
                entity ~ "_changes declares a column '" ~ column.name ~ "'. Inside the project a name has letters, digits "
                ~ "and _ only; what the records call it goes into `config: {meta: {field: …}}`."
            ) }}
        {%- endif -%}
        {%- do columns.append({
            'name': column.name,
            'data_type': column.data_type | lower,
            'field': field,
            'unit': meta.get('unit'),
            'former_fields': meta.get('former_fields', []),
            'came_later': meta.get('came_later', false),
            'own_name': highwater._own_name(column.name, field),
        }) -%}
    {%- endfor -%}
    {%- if not columns -%}
        {{ exceptions.raise_compiler_error(
            "the model " ~ entity ~ "_changes declares no column with a data_type in its YAML; the columns of "
            ~ "an entity and their types are declared there."
        ) }}
    {%- endif -%}
    {{ return(columns) }}
{%- endmacro -%}

{%- macro _own_name(name, field) -%}
    {#- source_feed holds the field feed, which is its name in the mart; source_city holds source_city -#}
    {%- set plain = modules.re.sub('\\W', '_', field) | lower -%}
    {{ return(plain if name == 'source_' ~ plain else name) }}
{%- endmacro -%}
