{%- macro shard_column(feed, table, entity) -%}
    {#- At parse time and in unit tests there is no graph. -#}
    {%- set shards = [] -%}
    {%- for node in (graph.sources or {}).values() if execute and node.source_name == feed and node.name == table -%}
        {%- do shards.append(node.config.get('meta', {}).get('shards')) -%}
    {%- endfor -%}
    {%- if not shards or not shards[0] -%}
        {{ return(none) }}
    {%- endif -%}
    {%- for column in highwater.key_columns(entity) if column.name == shards[0].column and column.data_type == 'string' -%}
        {%- for other in highwater.entity_columns(entity) if other.field == column.field and other.name != column.name -%}
            {{ exceptions.raise_compiler_error(
                entity ~ "_changes declares '" ~ other.name ~ "' for the field '" ~ column.field ~ "', which stands for the column '" ~ column.name
                ~ "' of its shards. Give '" ~ column.name ~ "' a field that no record has, `config: {meta: {field: shard of the record}}`."
            ) }}
        {%- endfor -%}
        {{ return(column) }}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        "the source " ~ feed ~ "." ~ table ~ " declares shards with the column '" ~ shards[0].column ~ "', so "
        ~ entity ~ "_changes must declare that column as string and name it in its key: two shards may have the same key."
    ) }}
{%- endmacro -%}
