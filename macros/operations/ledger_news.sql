{%- macro ledger_news(ledger, was_view) -%}
    {%- set news = {'before': [], 'statements': [], 'then': highwater._ledger_gathered, 'feeds': {}, 'unbuilt': []} -%}
    {%- set parts = [] -%}
    {%- set recorded = highwater._recorded_batches(ledger) -%}
    {%- set watermarks = highwater.gathered_watermarks('ledger') -%}
    {%- for feed, tables in highwater.tables_of_feeds().items() -%}
        {%- set declaration = local_md5(tojson(tables)) -%}
        {%- set watermark = watermarks.get((feed, none), {}) -%}
        {#- a table that was declared since may have old records -#}
        {%- set newest = highwater.newest_batches(source(feed, tables[0][2]), watermark.landing_batch if watermark.declaration == declaration else 0) -%}
        {%- do news.feeds.update({feed: {'declaration': declaration, 'newest': newest, 'was': watermark}}) -%}
        {%- set queried = [] -%}
        {%- for entity, source_table, name in tables if newest.get(source_table, 0) > recorded.get((entity, feed), 0) -%}
            {%- if load_cached_relation(ref(project_name, entity ~ '_changes')) is none -%}
                {#- declared, and its log is made by a later build -#}
                {%- do news.unbuilt.append(entity) -%}
            {%- else -%}
                {%- set watermark = recorded.get((entity, feed), 0) -%}
                {%- do queried.append({'entity': entity, 'source_table': source_table, 'watermark': watermark, 'where':
                    "table_name = '" ~ entity ~ "' and feed = '" ~ feed ~ "' and landing_batch > " ~ watermark}) -%}
            {%- endif -%}
        {%- endfor -%}
        {#- each log is read once here, so a statement takes more of them -#}
        {%- for some in queried | batch(2 * highwater.tables_at_once()) -%}
            {%- set rows = highwater.ledger_rows(source(feed, tables[0][2]), some) -%}
            {%- do parts.append({'where': some | map(attribute='where') | list, 'rows': rows}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do news.statements.extend(highwater.statements_of_parts(parts, 2 * highwater.tables_at_once())) -%}
    {{ return(news) }}
{%- endmacro -%}

{%- macro _ledger_gathered(ledger, news) -%}
    {#- A feed's watermark moves when no table of it waits for a log that has not read its records yet. -#}
    {%- if news.statements -%}
        {%- do highwater.shared_by_lists().pop('counted', none) -%}
    {%- endif -%}
    {%- set recorded = highwater._recorded_batches(ledger) -%}
    {%- set tables_of_feeds = highwater.tables_of_feeds() -%}
    {%- set watermarks = [] -%}
    {%- for feed, found in news.feeds.items() if found.newest -%}
        {%- set waiting = [] -%}
        {%- for entity, source_table, name in tables_of_feeds[feed]
            if found.newest.get(source_table, 0) > recorded.get((entity, feed), 0) -%}
            {%- do waiting.append(entity) -%}
        {%- endfor -%}
        {%- if not waiting -%}
            {%- do watermarks.append({'feed': feed, 'declaration': found.declaration, 'landing_batch': found.newest.values() | max, 'was': found.was}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do highwater.keep_watermarks_of_feeds('ledger', watermarks) -%}
{%- endmacro -%}

{%- macro _recorded_batches(ledger) -%}
    {%- set recorded = {} -%}
    {%- for row in highwater.counted_in_ledger(ledger) -%}
        {%- do recorded.update({(row.table_name, row.feed): row.newest | int}) -%}
    {%- endfor -%}
    {{ return(recorded) }}
{%- endmacro -%}
