{%- macro arcion_json_records(records, feed, entity) -%}
    {%- set parsed -%}
        select
            *,
            documents[0].optype as optype,
            documents[0].cursor as cursor,
            documents[0].before as before,
            documents[0].after as after,
            documents[0].exists as presence,
            false as is_snapshot,
            size(documents) = 1 and documents[0].after is not null as is_readable
        from (
            select
                *,
                {{ json_documents('text', 'struct<
                    opType: string,
                    cursor: string,
                    before: map<string, string>,
                    after: map<string, string>,
                    exists: map<string, string>
                >') | indent(16) }} as documents
            from (
                select
                    *,
                    {{ json_text('record') | indent(20) }} as text
                from {{ records }}
            )
        )
    {%- endset -%}
    {{- arcion_changes(parsed, feed, entity, null_text=feed_setting(feed, 'null', 'null')) -}}
{%- endmacro -%}
