{%- macro unrecorded_batches() -%}
    {%- set unrecorded = [] -%}
    {%- for table in logged_tables() -%}
        {%- for feed, source_table in table.sources -%}
            {%- do unrecorded.append({
                'entity': table.entity,
                'source_table': source_table,
                'raw_table': source(feed, source_table),
                'log': ref(table.entity ~ '_changes'),
                'mark': 0,
            }) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if not execute or not is_incremental() -%}
        {{ return(unrecorded) }}
    {%- endif -%}
    {%- set marks = {} -%}
    {%- for row in run_query(
        'select table_name, feed, max(landing_batch) from ' ~ this ~ ' group by table_name, feed'
    ).rows -%}
        {%- do marks.update({row[0] ~ '/' ~ row[1]: row[2] | int}) -%}
    {%- endfor -%}
    {%- set logs = [] -%}
    {%- for batch in unrecorded -%}
        {%- do batch.update({'mark': marks.get(batch.entity ~ '/' ~ batch.raw_table.identifier, 0)}) -%}
        {%- do logs.append(
            '(select ' ~ loop.index0 ~ ' as place from ' ~ batch.log ~ " where feed = '" ~ batch.raw_table.identifier
            ~ "' and landing_batch > " ~ batch.mark ~ ' limit 1)'
        ) -%}
    {%- endfor -%}
    {%- set places = run_query(logs | join(' union all ')).columns[0].values() | map('int') | list -%}
    {%- set left = [] -%}
    {%- for place in places -%}
        {%- do left.append(unrecorded[place]) -%}
    {%- endfor -%}
    {{ return(left) }}
{%- endmacro -%}
