{%- macro gathered_batches() -%}
    {%- set batches = api.Relation.create(schema=this.schema, identifier='gathered_batches') -%}
    {%- if adapter.get_relation(none, batches.schema, batches.identifier) is none -%}
        {%- do run_query(
            'create table if not exists ' ~ batches
            ~ ' (model string, feed string, table_name string, declaration string, landing_batch bigint)'
            ~ ' using delta partitioned by (model)'
        ) -%}
    {%- endif -%}
    {{ return(batches) }}
{%- endmacro -%}
