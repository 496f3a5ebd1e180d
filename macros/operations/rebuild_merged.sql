{%- macro rebuild_merged(entity) -%}
    {%- set log = _built_relation(entity ~ '_changes') -%}
    {%- set merged = _built_relation(entity ~ '_merged') -%}
    {%- set publications = _publications_of(entity) -%}
    {%- set rows %}
        with changes as (
            select
                {{ _stays_pending(entity) }} as is_pending,
                false as is_new,
                {%- for column in _columns_of_change(entity) %}
                {%- if column == 'log_batch' %}
                -- all changes of the key are in the row: none of them is taken in again
                max(log_batch) over (partition by {{ entity_key(entity) | join(', ') }}) as log_batch
                {%- else %}
                {{ column }}
                {%- endif %}
                {{- ',' if not loop.last }}
                {%- endfor %}
            from {{ log }}
            where
                rejection_reason is null
                {%- if publications %}
                and log_batch <= {{
                    published_log_batch(publications, entity)
                    or run_query('select coalesce(max(log_batch), 0) from ' ~ merged).rows[0][0]
                }}
                {%- endif %}
        )
        {{ latest_change_per_key('changes', entity) }}
    {%- endset -%}
    {%- do run_query(_table_of_rows(entity, rows)) -%}
{%- endmacro -%}

{%- macro _publications_of(entity) -%}
    {#- The merged table of a publish group reads its publications; others read none. -#}
    {%- for parent in _built_model(entity ~ '_merged').depends_on.nodes if parent.endswith('_publications') -%}
        {{ return(_built_relation(parent.split('.')[-1])) }}
    {%- endfor -%}
    {{ return(none) }}
{%- endmacro -%}

{%- macro _built_relation(model_name) -%}
    {%- set node = _built_model(model_name) -%}
    {{ return(api.Relation.create(schema=node.schema, identifier=node.alias)) }}
{%- endmacro -%}

{%- macro _built_model(model_name) -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.name == model_name -%}
        {{ return(node) }}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error("there is no model " ~ model_name ~ ".") }}
{%- endmacro -%}
