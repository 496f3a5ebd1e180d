{% test has_declared_fields(model, feed, table, entity, source_table=none) %}

-- noqa: disable=LT02
{#- the SQL below stands in a block of Jinja, in which the linter sees no indent -#}
{%- set format = highwater.feed_setting(feed, 'format') -%}
{#- a field of that name is another one: the schema that a record names is the value of the column -#}
{%- set shard = highwater.shard_column(feed, table, entity) -%}
{%- set log = adapter.get_relation(model.database, model.schema, entity ~ '_changes') if execute -%}
{#- a record's own schema counts, whatever is declared; that the two differ should be known -#}
{%- set has_units = (format or '').startswith('debezium-') -%}
{%- set with_unit = highwater.entity_columns(entity) | selectattr('unit', 'in', ['millis', 'micros', 'nanos']) -%}
{%- set units = with_unit | list if has_units else [] -%}
{%- set said = {'millis': ['io.debezium.time.Timestamp', 'org.apache.kafka.connect.data.Timestamp'],
    'micros': ['io.debezium.time.MicroTimestamp'], 'nanos': ['io.debezium.time.NanoTimestamp']} -%}
{%- set query = "select max(landing_batch) from " ~ log ~ " where feed = '" ~ feed ~ "'" -%}
{%- set facts = highwater.facts_of_table(entity) if execute else {} -%}
{%- set known = facts.feeds.get(feed) if facts.feeds and 'since' not in facts else none -%}
{%- set asked = (run_query(query).rows[0][0] or 0) | int if log and known is none else 0 -%}
{%- set watermark = asked if known is none else known -%}
{#- what a build has applied that was killed before it had told of it -#}
{%- set untold = fromjson(env_var('HIGHWATER_UNTOLD', '{}')).get(entity ~ ' ' ~ feed, watermark)
    if execute else watermark -%}

{#- one pass over the records: what a file lacks is what none of its records has -#}
{%- set declared = highwater.fields_of_files(
    highwater.entity_columns(entity) | rejectattr('came_later') | rejectattr('former_fields'), feed, table, entity
) | list if format not in ('datastream-json', 'arcion-csv') else [] -%}
{%- set found %}
with

new_records as (

    select
        source_file,
        source_line,
        {%- if units %}
        {{ highwater.types_of_record(feed) }} as types,
        {%- endif %}
        {{ highwater.carried_fields(feed) | indent(8) }} as carried
    from {{ source(feed, table) }}
    where
        entry = 'record'
        and source_table = {{ highwater.sql_text(source_table or table) }}
        and problem is null
        -- what the log has not applied, or nobody was told of
        and landing_batch > {{ [watermark, untold] | min }}

),

fields_of_files as (

    select
        new_records.source_file,
        said.field,
        said.type,
        min(new_records.source_line) as first_line,
        count(*) as records
    from new_records
        lateral view explode(
            {%- if units %}
            concat(
                coalesce(transform(carried, field -> struct(field, cast(null as string) as type)), array()),
                coalesce(
                    transform(filter(types, one -> one.name like '%Timestamp'), one -> struct(one.field, one.name as type)),
                    array()
                )
            )
            {%- else %}
            transform(carried, field -> struct(field, cast(null as string) as type))
            {%- endif %}
        ) as said
    group by new_records.source_file, said.field, said.type

),

files as (

    select
        source_file,
        collect_list(struct(field, first_line, records)) filter (where type is null) as carried
        {%- if units %},
        collect_list(struct(field, type, first_line, records)) filter (where type is not null) as timed
        {%- endif %}
    from fields_of_files
    group by source_file

)

select
    problem.problem,
    problem.field,
    files.source_file,
    problem.first_line,
    problem.records,
    -- what the records say, where another one is declared
    problem.unit
from files
    lateral view explode(concat(
        transform(
            filter(carried, one -> one.field not in ({{ highwater.known_fields(feed, entity, shard.field if shard else none) }})),
            one -> struct('is not declared' as problem, one.field, one.first_line, one.records, cast(null as string) as unit)
        )
        {%- if declared %},
        transform(
            -- a file of deletes alone has no fields
            filter(
                array({{ highwater.quoted_texts(declared) }}),
                field -> size(carried) > 0 and not exists(carried, one -> one.field = field)
            ),
            field -> struct(
                'is in no record of its file' as problem,
                field,
                cast(null as int) as first_line,
                0L as records,
                cast(null as string) as unit
            )
        )
        {%- endif %}
        {%- for column in units %},
        transform(
            filter(
                timed,
                one -> one.field = {{ highwater.sql_text(column.field) }}
                    and one.type not in ({{ highwater.quoted_texts(said[column.unit]) }})
            ),
            one -> struct(
                concat('is declared in {{ column.unit }}, and its records say ', one.type) as problem,
                one.field,
                one.first_line,
                one.records,
                case one.type
                    {%- for unit, types in said.items() %}
                    {%- for type in types %}
                    when '{{ type }}' then '{{ unit }}'
                    {%- endfor %}
                    {%- endfor %}
                end as unit
            )
        )
        {%- endfor %}
    )) as problem
{%- endset %}
{%- if execute and highwater.feed_setting(feed, 'new_fields') == 'fail' -%}
    {%- do highwater.refuse_new_fields(found, entity) -%}
{%- endif -%}
{{ found }}

{% endtest %}
