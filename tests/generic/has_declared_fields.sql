{% test has_declared_fields(model, feed, table, entity, source_table=none) %}

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

{%- set found %}
with

new_records as (

    select
        source_file,
        source_line,
        {{ highwater.types_of_record(feed) if units else 'null' }} as types,
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
        carried_field as field,
        min(new_records.source_line) as first_line,
        count(*) as records
    from new_records
        lateral view explode(new_records.carried) as carried_field
    group by new_records.source_file, carried_field

)
{%- if format not in ('datastream-json', 'arcion-csv') %}
{#- the other two leave NULLs out, or spread a column over three #},

files as (

    select distinct source_file from fields_of_files

),

declared_fields as (

    select
        -- records from before have no field of a column that came later, or was called otherwise
        explode(array({{ highwater.quoted_texts(highwater.fields_of_files(
            highwater.entity_columns(entity) | rejectattr('came_later') | rejectattr('former_fields'), feed, table, entity
        )) }})) as field

)
{%- endif %}

select
    'is not declared' as problem,
    field,
    source_file,
    first_line,
    records
from fields_of_files
where field not in ({{ highwater.known_fields(feed, entity, shard.field if shard else none) }})
{%- if format not in ('datastream-json', 'arcion-csv') %}

union all

select
    'is in no record of its file' as problem,
    declared_fields.field,
    files.source_file,
    cast(null as int) as first_line,
    0 as records
from files
cross join declared_fields
left anti join fields_of_files as found
    on files.source_file = found.source_file and declared_fields.field = found.field
{%- endif %}
{%- for column in units %}

union all

select
    concat('is declared in {{ column.unit }}, and its records say ', type.name) as problem,
    type.field,
    new_records.source_file,
    min(new_records.source_line) as first_line,
    count(*) as records
from new_records
    lateral view explode(new_records.types) as type
where
    type.field = {{ highwater.sql_text(column.field) }}
    and type.name like '%Timestamp'
    and type.name not in ({{ highwater.quoted_texts(said[column.unit]) }})
group by type.name, type.field, new_records.source_file
{%- endfor %}
{%- endset %}
{%- if execute and highwater.feed_setting(feed, 'new_fields') == 'fail' -%}
    {%- do highwater.refuse_new_fields(found, entity) -%}
{%- endif -%}
{{ found }}

{% endtest %}
