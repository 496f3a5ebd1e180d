{% materialization gathered, adapter='spark' %}
    {%- set gathered = this.incorporate(type='table') -%}
    {%- set there = load_cached_relation(this) -%}
    {%- set was_view = there is not none and there.is_view -%}
    {{- run_hooks(pre_hooks) -}}
    {%- if was_view -%}
        {%- do adapter.drop_relation(there) -%}
    {%- endif -%}
    {%- if there is none or was_view -%}
        {%- do highwater.forget_watermarks(model.name) -%}
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
    {%- do news.then(gathered, news) -%}
    {%- call noop_statement('main', 'GATHERED ' ~ tables.all) -%}
        {{ sql }}
    {%- endcall -%}
    {%- do persist_docs(gathered, model) -%}
    {{- run_hooks(post_hooks) -}}
    {{ return({'relations': [gathered]}) }}
{% endmaterialization %}

{%- macro _insert_of_tables(gathered, statement) -%}
    {#- one commit; run again it changes nothing -#}
    insert into {{ gathered }} replace where
        {%- for where in statement.where %}
        {{ 'or ' if not loop.first }}({{ where }})
        {%- endfor %}

    {{ statement.rows }}
{%- endmacro -%}
