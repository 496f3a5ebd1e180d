{%- macro compact_merged(entity, method='in-place') -%}
    {%- set merged = _built_relation(entity ~ '_merged') -%}
    {%- if method == 'in-place' -%}
        {%- do run_query(compact_pending(merged, entity, 'highwater compact')) -%}
    {%- elif method == 'full' -%}
        {%- do run_query(_table_of_rows(entity, _rewritten_rows(merged, entity))) -%}
    {%- else -%}
        {%- set columns = _partition_columns(entity) | reject('equalto', 'is_pending') | list -%}
        {%- if not columns -%}
            {{ exceptions.raise_compiler_error(
                merged.identifier ~ " is partitioned by is_pending only. Declare partition_by of the model, for example "
                ~ "[is_pending, region], and rebuild it, or compact it in full."
            ) }}
        {%- endif -%}
        {#- a key that changes its partition leaves the old one first: then every partition can be written by itself -#}
        {%- do run_query(_leave_other_partitions(merged, entity, columns)) -%}
        {%- for row in run_query(
            'select distinct ' ~ _quoted_names(columns) ~ ' from ' ~ merged ~ ' where is_pending'
            ~ (" and change_type <> 'truncate'" if entity_setting(entity, 'truncates', false) else '')
            ~ ' order by ' ~ _quoted_names(columns)
        ).rows -%}
            {%- set partition = [] -%}
            {%- for column in columns -%}
                {%- do partition.append(
                    '`' ~ column ~ '` is null' if row[loop.index0] is none
                    else '`' ~ column ~ '` = ' ~ _sql_text(row[loop.index0] | string)
                ) -%}
            {%- endfor -%}
            {%- set where = partition | join(' and ') -%}
            {%- do run_query(
                'insert into ' ~ merged ~ ' replace where ' ~ where ~ _rewritten_rows(merged, entity, where)
            ) -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _rewritten_rows(merged, entity, where='true') -%}
    {#- Base and pending rows of some partitions as base rows, columns as the table has them; truncates stay pending. #}
        select
            {%- for column in adapter.get_columns_in_relation(merged) %}
            {%- if column.name == 'is_pending' %}
            {{ _stays_pending(entity) }} as is_pending
            {%- else %}
            {{ 'false as ' if column.name == 'is_new' }}`{{ column.name }}`
            {%- endif %}
            {{- ',' if not loop.last }}
            {%- endfor %}
        from (
            {{ _base_and_pending(merged, entity_key(entity)) | indent(12) }}
        )
        where {{ where }}
{%- endmacro -%}

{%- macro _leave_other_partitions(merged, entity, columns) -%}
    merge into {{ merged }} as base
    using (
        select pending.*
        from {{ merged }} as pending
        inner join {{ merged }} as base
            on
                {%- for column in entity_key(entity) %}
                {{ 'and ' if not loop.first }}base.`{{ column }}` = pending.`{{ column }}`
                {%- endfor %}
        where
            pending.is_pending
            and not base.is_pending
            and not ({% for column in columns %}{{ ' and ' if not loop.first }}base.`{{ column }}` <=> pending.`{{ column }}`{% endfor %})
    ) as change
        on
            {%- for column in entity_key(entity) %}
            {{ 'and ' if not loop.first }}base.`{{ column }}` = change.`{{ column }}`
            {%- endfor %}
    when matched and base.is_pending then update set is_new = true
    when matched then delete
{%- endmacro -%}

{%- macro _table_of_rows(entity, rows) -%}
    {%- set merged = _built_relation(entity ~ '_merged') -%}
    {%- set partitions = _partition_columns(entity) -%}
    {%- set is_there = _names_and_types('describe table ' ~ merged) -%}
    {%- set wanted = _names_and_types('describe query ' ~ rows) -%}
    {%- set types = dict(wanted) -%}
    {%- do wanted.extend([['# Partition Information', ''], ['# col_name', 'data_type']]) -%}
    {%- for column in partitions -%}
        {%- do wanted.append([column, types[column]]) -%}
    {%- endfor -%}
    {%- if is_there | sort == wanted | sort %}
        {#- Delta takes a replaced table for another one: a query that is planned meanwhile could mix the two. #}
        insert overwrite {{ merged }} by name
    {%- else %}
        create or replace table {{ merged }}
        using delta
        partitioned by ({{ _quoted_names(partitions) }})
        tblproperties ('delta.enableDeletionVectors' = 'true')
        as
    {%- endif %}
        {{- rows }}
{%- endmacro -%}

{%- macro _names_and_types(question) -%}
    {%- set found = [] -%}
    {%- for row in run_query(question).rows -%}
        {%- do found.append([row[0], row[1] or '']) -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro -%}

{%- macro _partition_columns(entity) -%}
    {%- set columns = _built_model(entity ~ '_merged').config.get('partition_by') -%}
    {{ return([columns] if columns is string else columns) }}
{%- endmacro -%}
