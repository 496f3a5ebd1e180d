{% macro get_insert_into_sql(source_relation, target_relation) %}
    {%- if highwater.handed_on().is_empty -%}
        {{ return("select 'nothing has arrived'") }}
    {%- endif -%}
    {%- set columns = highwater._columns_to_fill(target_relation) | join(', ') -%}
    insert into table {{ target_relation }} ({{ columns }})
    {%- if highwater.writes_in_one_statement() %}
    select {{ columns }} from (
    {{ model.compiled_code }}
    )
    {%- else %}
    select {{ columns }} from {{ source_relation }}
    {%- endif %}
    {#- an embedded lake admits one process, and to ask costs as much as to write -#}
    {%- set numbered = highwater.handed_on().get('numbered') if target.name != 'embedded' else none -%}
    {%- if numbered %}
    -- what another build has written by the same number, before or while this is written, is not written again
    where if(
        exists (select 1 from {{ target_relation }} where {{ numbered.column }} >= {{ numbered.number }}),
        raise_error('{{ target_relation.identifier }}: another build has written {{ numbered.column }} {{ numbered.number }} meanwhile'),
        true
    )
    {%- endif %}
{% endmacro %}

{%- macro _columns_to_fill(target) -%}
    {#- A log keeps a column that is not declared any more, and what its select returns is known. -#}
    {%- if model.fqn[1] == 'changes' and model.name.endswith('_changes') -%}
        {%- set declared = highwater.entity_columns(model.name.removesuffix('_changes')) | map(attribute='name') | list -%}
        {%- set names = declared + highwater.contract_columns() + ['verdict', 'is_tied', 'log_batch'] -%}
        {{ return(['`' ~ names | join('`, `') ~ '`']) }}
    {%- endif -%}
    {{ return(adapter.get_columns_in_relation(target) | map(attribute='quoted') | list) }}
{%- endmacro -%}
