{%- macro ungathered_parts(model_name) -%}
    {%- if adapter.get_relation(none, this.schema, ref('ledger').identifier) is none -%}
        {{ return([]) }}
    {%- endif -%}
    {#- A table that the project no longer declares has no log to query. -#}
    {%- set declared = highwater.tables_of_project() | map(attribute='entity') | list -%}
    {%- set parts = [] -%}
    {%- for row in highwater.counted_in_ledger(ref('ledger')) if row.table_name in declared -%}
        {%- set part = {'table_name': row.table_name, 'feed': row.feed, 'newest': row.newest | int} -%}
        {%- for name in ['watermark', 'rejected', 'tied'] -%}
            {%- do part.update({name: row[model_name ~ '_' ~ name] | int}) -%}
        {%- endfor -%}
        {%- if part.newest > part.watermark -%}
            {%- do parts.append(part) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(parts) }}
{%- endmacro -%}
