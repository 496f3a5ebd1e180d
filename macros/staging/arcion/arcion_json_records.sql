{%- macro arcion_json_records(records, feed, table, entity) -%}
    {%- set parsed %}
        select
            *,
            document.optype as optype,
            document.cursor as cursor,
            document.before as before,
            document.after as after,
            document.exists as presence,
            false as is_snapshot,
            document.after is not null or (upper(document.optype) <=> 'D' and document.before is not null) as is_readable
        from (
            {{- highwater.json_records(records, 'struct<
                opType: string,
                cursor: string,
                before: map<string, string>,
                after: map<string, string>,
                exists: map<string, string>
            >') | indent(8) }}
        )
    {%- endset -%}
    {{- highwater.arcion_changes(parsed, feed, table, entity, null_text=highwater.feed_setting(feed, 'null', 'null')) -}}
{%- endmacro -%}
