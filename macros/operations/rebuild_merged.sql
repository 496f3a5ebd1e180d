{%- macro rebuild_merged(entity) -%}
    {%- set columns = merged_columns(entity) -%}
    {%- set is_partial = entity_setting(entity, 'partial_images', false) -%}
    {%- set log = _built_relation(entity ~ '_changes') -%}
    {%- set merged = _built_relation(entity ~ '_merged') -%}
    {%- set statement -%}
        create or replace table {{ merged }}
        using delta
        partitioned by (is_pending)
        tblproperties ('delta.enableDeletionVectors' = 'true')
        as
        with changes as (
            select
                {{ "change_type = 'truncate'" if entity_setting(entity, 'truncates', false) else 'false' }} as is_pending,
                false as is_new,
                {%- if is_partial %}
                present_columns,
                {%- endif %}
                {{ columns | reject('in', ['is_pending', 'is_new'] + _fold_columns()) | join(', ') }}
            from {{ log }}
            where rejection_reason is null
        )
        {{ latest_change_per_key('changes', entity) }}
    {%- endset -%}
    {%- do run_query(statement) -%}
{%- endmacro -%}

{%- macro _built_relation(model_name) -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.name == model_name -%}
        {{ return(api.Relation.create(schema=node.schema, identifier=node.alias)) }}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error("there is no model " ~ model_name ~ ".") }}
{%- endmacro -%}
