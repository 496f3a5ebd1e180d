{%- macro rewrite_merged(entity, since=none, rows=none) -%}
    {%- set merged = highwater.built_relation(entity ~ '_merged') -%}
    {%- set columns = highwater._partition_columns(entity) -%}
    {%- if since is none -%}
        {%- set own_rows = 'select ' ~ highwater.quoted_names(highwater.merged_columns(entity)) ~ ' from ' ~ merged -%}
        {%- do run_query(highwater._table_of_rows(entity, rows or own_rows)) -%}
        {{ return('') }}
    {%- endif -%}
    {%- for row in run_query(
        'select distinct ' ~ highwater.quoted_names(columns) ~ ' from ' ~ merged ~ ' where log_batch > ' ~ since
        ~ ' order by ' ~ highwater.quoted_names(columns)
    ).rows -%}
        {%- set partition = [] -%}
        {%- for column in columns -%}
            {%- do partition.append(
                '`' ~ column ~ '` is null' if row[loop.index0] is none
                else '`' ~ column ~ '` = ' ~ highwater.sql_text(row[loop.index0] | string)
            ) -%}
        {%- endfor -%}
        {%- set where = partition | join(' and ') -%}
        {%- do run_query(
            'insert into ' ~ merged ~ ' replace where ' ~ where ~ ' select * from ' ~ merged ~ ' where ' ~ where
        ) -%}
    {%- endfor -%}
{%- endmacro -%}

{%- macro _table_of_rows(entity, rows) -%}
    {%- set merged = highwater.built_relation(entity ~ '_merged') -%}
    {%- set partitions = highwater._partition_columns(entity) -%}
    {%- set is_there = highwater._names_and_types('describe table ' ~ merged) -%}
    {%- set wanted = highwater._names_and_types('describe query ' ~ rows) -%}
    {%- set types = dict(wanted) -%}
    {%- if partitions -%}
        {%- do wanted.extend([['# Partition Information', ''], ['# col_name', 'data_type']]) -%}
    {%- endif -%}
    {%- for column in partitions -%}
        {%- do wanted.append([column, types[column]]) -%}
    {%- endfor -%}
    {%- if is_there | sort == wanted | sort %}
        {#- Delta takes a replaced table for another one: a query that is planned meanwhile could mix the two. #}
        insert overwrite {{ merged }} by name
    {%- else %}
        create or replace table {{ merged }}
        using delta
        {%- if partitions %}
        partitioned by ({{ highwater.quoted_names(partitions) }})
        {%- endif %}
        as
    {%- endif %}
        {{ rows }}
{%- endmacro -%}

{%- macro _names_and_types(question) -%}
    {%- set found = [] -%}
    {%- for row in run_query(question).rows -%}
        {%- do found.append([row[0], row[1] or '']) -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro -%}

{%- macro _partition_columns(entity) -%}
    {%- set columns = highwater.built_model(entity ~ '_merged').config.get('partition_by') or [] -%}
    {#- `is_pending` is what projects of version 0.5 may still declare; there is no such column any more. -#}
    {{ return(([columns] if columns is string else columns) | reject('equalto', 'is_pending') | list) }}
{%- endmacro -%}
