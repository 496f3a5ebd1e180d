{%- macro unassigned_records_news(unassigned, was_view) -%}
    {%- set news = {'before': [], 'statements': [], 'then': highwater._unassigned_records_gathered, 'feeds': {}} -%}
    {%- set watermarks = highwater.gathered_watermarks('unassigned_records') -%}
    {%- set parts = [] -%}
    {%- for feed, tables in highwater.tables_of_feeds().items() -%}
        {%- set raw_table = source(feed, tables[0][2]) -%}
        {%- set declared = tables | map(attribute=1) | list -%}
        {%- set shards = highwater._shards_of(feed, tables) -%}
        {%- set declaration = local_md5(tojson(declared | sort) ~ (tojson(shards) if shards else '')) -%}
        {%- set watermark = watermarks.get((feed, none), {}) -%}
        {%- set is_same = watermark.declaration == declaration -%}
        {%- set upto = watermark.landing_batch if is_same else 0 -%}
        {%- if watermark and not is_same -%}
            {%- if shards -%}
                {#- their records had names of their own, which are all read again -#}
                {%- do news.before.append('delete from ' ~ unassigned ~ " where feed = '" ~ feed ~ "'") -%}
            {%- endif -%}
            {%- do news.before.extend(highwater._forget_declared(unassigned, feed, declared)) -%}
        {%- endif -%}
        {%- set newest = highwater.newest_batches(raw_table, upto) -%}
        {%- set names = newest.keys() | reject('in', declared) | list -%}
        {%- do news.feeds.update({feed: {'declaration': declaration, 'newest': newest, 'was': {} if names else watermark}}) -%}
        {%- for some in names | batch(50) -%}
            {%- set where = 'landing_batch > ' ~ upto ~ ' and ' ~ highwater._is_one_of('source_table', some) -%}
            {%- do parts.append({
                'where': ["feed = '" ~ feed ~ "' and " ~ where],
                'rows': highwater._unassigned_rows(raw_table, where),
            }) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do news.statements.extend(highwater.statements_of_parts(parts)) -%}
    {{ return(news) }}
{%- endmacro -%}

{%- macro _shards_of(feed, tables) -%}
    {%- set shards = [] -%}
    {%- for _, source_table, name in tables -%}
        {%- set declared = graph.sources['source.' ~ project_name ~ '.' ~ feed ~ '.' ~ name].config.get('meta', {}).get('shards') -%}
        {%- if declared -%}
            {%- do shards.append([source_table, declared]) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(shards) }}
{%- endmacro -%}

{%- macro _unassigned_records_gathered(unassigned, news) -%}
    {%- set watermarks = [] -%}
    {%- for feed, found in news.feeds.items() if found.newest -%}
        {%- do watermarks.append({'feed': feed, 'declaration': found.declaration, 'landing_batch': found.newest.values() | max, 'was': found.was}) -%}
    {%- endfor -%}
    {%- do highwater.keep_watermarks_of_feeds('unassigned_records', watermarks) -%}
{%- endmacro -%}

{%- macro _forget_declared(unassigned, feed, declared) -%}
    {#- The log of a table that was declared begins with its first record. -#}
    {%- set names = [] -%}
    {%- for row in run_query(
        'select distinct source_table from ' ~ unassigned ~ " where feed = '" ~ feed ~ "'"
    ).rows if row[0] in declared -%}
        {%- do names.append(row[0]) -%}
    {%- endfor -%}
    {%- set statements = [] -%}
    {%- for some in names | batch(50) -%}
        {%- do statements.append(
            'delete from ' ~ unassigned ~ " where feed = '" ~ feed ~ "' and " ~ highwater._is_one_of('source_table', some)
        ) -%}
    {%- endfor -%}
    {{ return(statements) }}
{%- endmacro -%}

{%- macro _is_one_of(column, names) -%}
    {%- set texts = names | reject('none') | map('string') | list -%}
    (
        {{- column ~ ' is null' if none in names -}}
        {{- ' or ' if none in names and texts -}}
        {%- if texts -%}
            {{- column }} in ({% for name in texts %}{{ highwater.sql_text(name) }}{{ ', ' if not loop.last }}{% endfor %})
        {%- endif -%}
    )
{%- endmacro -%}

{%- macro _unassigned_rows(raw_table, where) -%}
    select
        '{{ raw_table.identifier }}' as feed,
        source_table,
        source_file,
        landing_batch,
        landed_at,
        count(*) as records,
        min(source_line) as first_line,
        min_by(
            case
                when is_valid_utf8(cast(record as string)) then cast(record as string)
                else concat('bytes in hex: ', hex(record))
            end,
            source_line
        ) as first_text
    from {{ raw_table }}
    where entry = 'record' and {{ where }}
    group by source_table, source_file, landing_batch, landed_at
{%- endmacro -%}
