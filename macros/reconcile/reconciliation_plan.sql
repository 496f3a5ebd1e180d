{%- macro reconciliation_plan(tables=[]) -%}
    {%- set plans = [] -%}
    {%- for test in graph.nodes.values()
        if test.resource_type == 'test' and test.test_metadata and test.test_metadata.name == 'matches_export' -%}
        {%- set model = graph.nodes[test.attached_node] -%}
        {%- if not tables or model.name in tables -%}
            {%- do plans.append(highwater._plan_of_table(model, test)) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do highwater.hand_over('reconciliation plan', plans) -%}
{%- endmacro -%}

{%- macro _plan_of_table(model, test) -%}
    {%- set arguments = test.test_metadata.kwargs -%}
    {%- set export = graph.nodes[test.depends_on.nodes | reject('eq', model.unique_id) | first] -%}
    {%- set source = namespace(feed=none, table=none, raw=none, positions=none, exports=none) -%}
    {%- for id in export.depends_on.nodes if id in graph.sources -%}
        {%- set source.feed = graph.sources[id].source_name -%}
        {%- set source.table = graph.sources[id].config.get('meta', {}).get('source_table', graph.sources[id].name) -%}
        {%- set source.raw = graph.sources[id].relation_name -%}
        {%- set source.positions = graph.sources[id].source_meta.get('feed', {}).get('positions') -%}
        {%- set source.exports = highwater.delivered_exports(
            api.Relation.create(schema=graph.sources[id].schema, identifier=graph.sources[id].identifier), source.table
        ) -%}
    {%- endfor -%}
    {%- set key = arguments.get('key') -%}
    {%- set where = test.config.get('where') -%}
    {%- set lake = model.relation_name | string -%}
    {%- set comparison = highwater.comparison_with_export(
        lake, api.Relation.create(schema=export.schema, identifier=export.alias), key, arguments.get('columns'),
        arguments.get('exclude_columns', []), where, has_reasons=source.feed is not none
    ) -%}
    {%- set columns = comparison.columns -%}
    {%- set readable = comparison.readable -%}
    {%- set has_log = graph.nodes.values() | selectattr('resource_type', 'eq', 'model')
        | selectattr('name', 'eq', model.name ~ '_changes') | list | length > 0 -%}
    {#- where positions go, in the form of one -#}
    {%- set marks = {
        'start': 'aaaaaaaaaaaaaaaa/aaaaaaaaaaaaaaaa', 'position': 'bbbbbbbbbbbbbbbb/bbbbbbbbbbbbbbbb', 'log_batch': '{log_batch}',
    } -%}
    {%- set log = api.Relation.create(schema=model.schema, identifier=model.name ~ '_changes') -%}
    {%- set has_history = has_log and source.positions and highwater.entity_key(model.name) -%}
    {#- the rows of the lake are those of the table, or those as of a position: a view has them -#}
    {%- set compared = '{lake_rows}' -%}
    {%- set plan = {
        'table': model.name,
        'marks': marks,
        'lake': lake,
        'export': export.relation_name | string,
        'where': where,
        'key': key,
        'columns': columns,
        'not_compared': comparison.not_compared,
        'sensitive': comparison.sensitive,
        'feed': source.feed,
        'source_table': source.table,
        'raw': source.raw | string if source.raw else none,
        'exports': source.exports,
        'positions': source.positions,
        'log': log | string if has_log else none,
        'log_key': highwater.names_of_key(model.name) if has_log and highwater.entity_key(model.name) else {},
        'sequence': highwater.sequence_of_position('position', source.positions) if source.positions else none,
        'rows_at_position': highwater._rows_at_position(model, marks.position) if has_history else none,
        'rows_of_log': highwater.rows_as_of(log, model.name, sequence=marks.position) if has_history else none,
        'versions': highwater._versions_between(model, marks.start, marks.position) if has_history else none,
        'is_baseline': highwater.is_baseline_sequence('change_sequence_number'),
        'changed_since': highwater._keys_changed_since(log, model.name, marks.position) if has_history else none,
        'verdicts_of_log': highwater._verdicts_of_log(model, log, marks) if has_history else none,
        'verdicts_of_whole_log': highwater._verdicts_of_log(model, log, marks, is_whole=true) if has_history else none,
        'columns_of_log': highwater._columns_of_log(model.name) if has_history else [],
        'declared_sensitive': comparison.declared_sensitive,
        'buckets': highwater.differing_buckets(compared, readable, key, columns),
        'keys': highwater.differing_keys('{lake_part}', '{export_part}', key, columns) if key else none,
        'verdicts': highwater.row_verdicts('{lake_part}', '{export_part}', key, columns),
        'verdicts_of_unique_keys': highwater.row_verdicts('{lake_part}', '{export_part}', key, columns, has_unique_keys=true),
        'readable': readable | string,
        'lake_bucket': highwater.bucket_of_key('lake', key, columns),
        'export_bucket': highwater.bucket_of_key('export', key, columns),
    } -%}
    {{ return(plan) }}
{%- endmacro -%}

{%- macro _keys_changed_since(log, entity, position) -%}
select distinct `{{ highwater.entity_key(entity) | join('`, `') }}`
from {{ log }}
where
    rejection_reason is null
    and change_type <> 'truncate'
    and change_sequence_number >= '{{ position }}0'
{%- endmacro -%}

{%- macro _own_key_from(keys, entity) -%}
    {#- Keys by their names in the mart, from those that have the names of the log. -#}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set names = [] -%}
    {%- for column in highwater.entity_columns(entity) if column.name in key -%}
        {%- do names.append(highwater.as_own_name(column)) -%}
    {%- endfor -%}
(select {{ names | join(', ') }} from {{ keys }})
{%- endmacro -%}

{%- macro _rows_at_position(model, position) -%}
    {%- set entity = model.name -%}
    {%- set log = api.Relation.create(schema=model.schema, identifier=entity ~ '_changes') -%}
    {%- set names = '`' ~ highwater.entity_columns(entity) | map(attribute='own_name') | join('`, `') ~ '`' -%}
    {%- set names_of_key = '`' ~ highwater.names_of_key(entity) | join('`, `') ~ '`' -%}
with

changed_since as (

    {{ highwater._keys_changed_since(log, entity, position) | indent(4) }}

),

as_they_were as (

    {{ highwater.rows_as_of(log, entity, sequence=position, keys='select * from changed_since') | indent(4) }}

)

select {{ names }}
from {{ model.relation_name }}
left anti join {{ highwater._own_key_from('changed_since', entity) }} using ({{ names_of_key }})

union all

select {{ names }}
from as_they_were
{%- endmacro -%}

{%- macro _columns_of_log(entity) -%}
    {#- Every column of the table; both sides have its declared type, and no rule holds. -#}
    {%- set types = {} -%}
    {%- set names = [] -%}
    {%- for column in highwater.entity_columns(entity) -%}
        {%- do types.update({column.own_name | lower: column.data_type}) -%}
        {%- do names.append(column.own_name) -%}
    {%- endfor -%}
    {{ return(highwater.comparable_columns(entity, entity, names, types=types)) }}
{%- endmacro -%}

{%- macro _verdicts_of_log(model, log, marks, is_whole=false) -%}
    {#- What the table shows beside what its log says up to a batch, of the keys that changed behind a position, or of all. -#}
    {%- set entity = model.name -%}
    {%- set key = highwater.names_of_key(entity).keys() | list -%}
    {%- set columns = highwater._columns_of_log(entity) -%}
    {%- set changed = highwater._keys_changed_since(log, entity, marks.position) -%}
    {%- set last = 'f' * 16 -%}
    {%- set lake = model.relation_name if is_whole
        else '(select * from ' ~ model.relation_name ~ ' left semi join ' ~ highwater._own_key_from('(' ~ changed ~ ')', entity)
        ~ ' using (`' ~ key | join('`, `') ~ '`))' -%}
    {%- set logged = highwater.rows_as_of(log, entity, sequence=last, keys=none if is_whole else changed, log_batch=marks.log_batch) -%}
    {{ highwater.row_verdicts(lake, '(' ~ logged ~ ')', key, columns) }}
{%- endmacro -%}

{%- macro _versions_between(model, start, end) -%}
    {%- set entity = model.name -%}
    {%- set columns = highwater.entity_columns(entity) -%}
    {%- set log = api.Relation.create(schema=model.schema, identifier=entity ~ '_changes') -%}
    {%- set accepted %}rejection_reason is null
    and change_sequence_number >= '{{ start }}0'
    and change_sequence_number < '{{ end }}0'
    {%- endset -%}
    {%- set truncated = "(select count(*) > 0 from " ~ log ~ " where change_type = 'truncate' and " ~ accepted | replace('\n   ', '') ~ ")"
        if highwater.entity_setting(entity, 'truncates', false) else 'false' -%}
with

before as (

    {{ highwater.rows_as_of(log, entity, sequence=start) | indent(4) }}

)

select
    `{{ columns | map(attribute='own_name') | join('`, `') }}`,
    false as `is gone`,
    true as `is before`,
    true as `is whole`,
    {{ truncated }} as `is truncated`
from before

union all

select
    {%- for column in columns %}
    {{ highwater.as_own_name(column) }},
    {%- endfor %}
    is_deleted as `is gone`,
    false as `is before`,
    {{ 'present_columns is null' if highwater.entity_setting(entity, 'partial_images', false) else 'true' }} as `is whole`,
    {{ truncated }} as `is truncated`
from {{ log }}
where
    change_type <> 'truncate'
    and {{ accepted }}
{%- endmacro -%}
