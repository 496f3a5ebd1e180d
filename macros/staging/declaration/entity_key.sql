{%- macro entity_key(entity) -%}
    {%- if not execute -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set key = highwater.entity_declaration(entity).config.get('meta', {}).get('key', []) -%}
    {%- set names = highwater.entity_columns(entity) | map(attribute='name') | list -%}
    {%- if key is string or (not key and 'key' not in highwater.entity_declaration(entity).config.get('meta', {})) -%}
        {{ exceptions.raise_compiler_error(
            "the model " ~ entity ~ "_changes declares no key. Add a list of columns to its YAML, for example "
            ~ "`config: {meta: {key: [" ~ names[0] ~ "]}}`."
        ) }}
    {%- endif -%}
    {%- for column in key if column not in names -%}
        {{ exceptions.raise_compiler_error(
            "the key of " ~ entity ~ "_changes names '" ~ column ~ "', which is none of its columns: "
            ~ names | join(', ') ~ "."
        ) }}
    {%- endfor -%}
    {{ return(key) }}
{%- endmacro -%}
