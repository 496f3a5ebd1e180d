{%- macro entity_columns(entity) -%}
    {#- At parse time there is no graph yet; nothing is compiled from what is returned then. -#}
    {%- if not execute -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set declaration = _entity_declaration(entity) -%}
    {%- set columns = [] -%}
    {%- for column in declaration.columns.values() if column.data_type -%}
        {%- if column.name in reserved_columns() -%}
            {{ exceptions.raise_compiler_error(
                entity ~ "_changes declares a column '" ~ column.name ~ "', which the project uses "
                ~ "itself. Name it source_" ~ column.name ~ ", with `config: {meta: {field: "
                ~ column.name ~ "}}`; the mart gives it its name back."
            ) }}
        {%- endif -%}
        {%- do columns.append({
            'name': column.name,
            'data_type': column.data_type | lower,
            'field': column.config.get('meta', {}).get('field', column.name),
            'unit': column.config.get('meta', {}).get('unit'),
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
