{% materialization gathered, adapter='spark' %}
    {%- set gathered = this.incorporate(type='table') -%}
    {%- set there = load_cached_relation(this) -%}
    {%- set was_view = there is not none and there.is_view -%}
    {{- run_hooks(pre_hooks) -}}
    {%- if was_view -%}
        {%- do adapter.drop_relation(there) -%}
    {%- endif -%}
    {%- if there is none or was_view -%}
        {%- do highwater._forget_gathered(model.name) -%}
        {%- do run_query(create_table_as(False, gathered, sql)) -%}
    {%- endif -%}
    {%- set news = context.highwater[model.name ~ '_news'](gathered, was_view) -%}
    {%- for statement in news.before -%}
        {%- do run_query(statement) -%}
    {%- endfor -%}
    {%- set tables = namespace(all=0, gathered=0) -%}
    {%- for statement in news.statements -%}
        {%- set tables.all = tables.all + statement.where | length -%}
    {%- endfor -%}
    {%- for statement in news.statements -%}
        {%- do run_query(highwater._insert_of_tables(gathered, statement)) -%}
        {%- set tables.gathered = tables.gathered + statement.where | length -%}
        {%- if loop.length > 3 -%}
            {%- do log(model.name ~ ': ' ~ tables.gathered ~ ' of ' ~ tables.all ~ ' gathered', info=true) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do context.highwater['_' ~ model.name ~ '_gathered'](gathered, news) -%}
    {%- call noop_statement('main', 'GATHERED ' ~ tables.all) -%}
        {{ sql }}
    {%- endcall -%}
    {%- do persist_docs(gathered, model) -%}
    {{- run_hooks(post_hooks) -}}
    {{ return({'relations': [gathered]}) }}
{% endmaterialization %}

{%- macro _tables_at_once() -%}
    {#- One commit for so many, and SQL that stays as long as it is however many tables a project has. -#}
    {{ return(8) }}
{%- endmacro -%}

{%- macro _insert_of_tables(gathered, statement) -%}
    insert into {{ gathered }} replace where
        {%- for where in statement.where %}
        {{ 'or ' if not loop.first }}({{ where }})
        {%- endfor %}

    {{ statement.rows }}
{%- endmacro -%}

{%- macro _statements_of_parts(parts, at_once=none) -%}
    {#- Of each part its rows, some together in one statement; a part is of as many tables as it has conditions. -#}
    {%- set at_once = at_once or highwater._tables_at_once() -%}
    {%- set statements = [] -%}
    {%- for part in parts -%}
        {%- if statements and statements[-1].where | length + part.where | length <= at_once -%}
            {%- do statements[-1].where.extend(part.where) -%}
            {%- do statements[-1].rows.append(part.rows) -%}
        {%- else -%}
            {%- do statements.append({'where': part.where | list, 'rows': [part.rows]}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for statement in statements -%}
        {%- do statement.update({'rows': statement.rows | join('\n\n    union all\n\n    ')}) -%}
    {%- endfor -%}
    {{ return(statements) }}
{%- endmacro -%}

{%- macro _gathered_batches() -%}
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

{%- macro _gathered_marks(model_name) -%}
    {%- set marks = {} -%}
    {%- for row in run_query(
        'select feed, table_name, declaration, landing_batch from ' ~ highwater._gathered_batches() ~ " where model = '"
        ~ model_name ~ "'"
    ).rows -%}
        {%- do marks.update({(row[0], row[1]): {'declaration': row[2], 'landing_batch': row[3] | int}}) -%}
    {%- endfor -%}
    {{ return(marks) }}
{%- endmacro -%}

{%- macro _forget_gathered(model_name) -%}
    {%- do run_query('delete from ' ~ highwater._gathered_batches() ~ " where model = '" ~ model_name ~ "'") -%}
{%- endmacro -%}

{%- macro _keep_marks_of_feeds(model_name, marks) -%}
    {%- set rows = [] -%}
    {%- for mark in marks -%}
        {%- do rows.append("('" ~ model_name ~ "', '" ~ mark.feed ~ "', null, '" ~ mark.declaration ~ "', " ~ mark.landing_batch ~ 'L)') -%}
    {%- endfor -%}
    {%- if rows -%}
        {%- do run_query(
            'insert into ' ~ highwater._gathered_batches() ~ " replace where model = '" ~ model_name ~ "' and feed in ('"
            ~ marks | map(attribute='feed') | join("', '") ~ "') values " ~ rows | join(', ')
        ) -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _keep_marks_of_ledger(model_name, declaration='') -%}
    {#- The ledger does not change meanwhile: what it has is what was gathered. -#}
    {%- do run_query(
        'insert into ' ~ highwater._gathered_batches() ~ " replace where model = '" ~ model_name ~ "' select '" ~ model_name
        ~ "', feed, table_name, '" ~ declaration ~ "', max(landing_batch) from " ~ ref('ledger')
        ~ ' group by feed, table_name'
    ) -%}
{%- endmacro -%}

{%- macro _news_of_ledger(model_name) -%}
    {%- if adapter.get_relation(none, this.schema, ref('ledger').identifier) is none -%}
        {{ return([]) }}
    {%- endif -%}
    {#- A table that the project no longer declares has no log to ask. -#}
    {%- set declared = highwater.tables_of_project() | map(attribute='entity') | list -%}
    {{ return(run_query(
        "select ledger.table_name, ledger.feed, coalesce(max(gathered.landing_batch), 0) as mark,"
        ~ " max(ledger.landing_batch) as newest, sum(ledger.rejected) as rejected, sum(ledger.tied) as tied"
        ~ " from " ~ ref('ledger') ~ " as ledger left join " ~ highwater._gathered_batches() ~ " as gathered"
        ~ " on gathered.model = '" ~ model_name ~ "' and gathered.feed = ledger.feed"
        ~ " and gathered.table_name = ledger.table_name"
        ~ " where ledger.landing_batch > coalesce(gathered.landing_batch, 0)"
        ~ " group by ledger.table_name, ledger.feed order by 1, 2"
    ).rows | selectattr('table_name', 'in', declared) | list) }}
{%- endmacro -%}

{%- macro _newest_batches(raw_table, mark) -%}
    {%- set newest = {} -%}
    {%- if load_cached_relation(raw_table) is none -%}
        {#- nothing of the feed has ever landed -#}
        {{ return(newest) }}
    {%- endif -%}
    {%- for row in run_query(
        'select source_table, max(landing_batch) from ' ~ raw_table
        ~ " where entry = 'record' and landing_batch > " ~ mark ~ ' group by source_table'
    ).rows -%}
        {%- do newest.update({row[0]: row[1] | int}) -%}
    {%- endfor -%}
    {{ return(newest) }}
{%- endmacro -%}

{%- macro _tables_of_feeds() -%}
    {%- set feeds = {} -%}
    {%- for table in highwater.tables_of_project() -%}
        {%- for feed, source_table in table.sources -%}
            {#- as raw has it, and as dbt names it -#}
            {%- set name = (table.tables or [])[loop.index0] or source_table -%}
            {%- do feeds.setdefault(feed, []).append([table.entity, source_table, name]) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(feeds) }}
{%- endmacro -%}

{%- macro _sql_text(text) -%}
    '{{ text | replace('\\', '\\\\') | replace("'", "\\'") }}'
{%- endmacro -%}
