{%- macro comparison_with_export(lake, export, key, columns=none, exclude_columns=[], where=none, has_reasons=false) -%}
    {%- set model = highwater._model_of(lake) if execute else none -%}
    {%- set declared = highwater._columns_of_model(lake, model, key) if execute and (model or not columns) else [] -%}
    {%- set names = key + (columns or declared) | reject('in', key + exclude_columns) | list -%}
    {%- set truth = highwater._with_names_of_the_source(export, model) -%}
    {{ return({
        'columns': highwater.comparable_columns(lake, truth, names, highwater._declared_rules(model)),
        'not_compared': declared | reject('in', names) | list,
        'sensitive': highwater._sensitive_columns(model, names),
        'declared_sensitive': highwater._sensitive_columns(model, model.columns.keys() | map('lower') | list if model else []),
        'readable': highwater._readable_rows(truth, where, has_reasons),
    }) }}
{%- endmacro -%}

{%- macro _columns_of_model(lake, model, key) -%}
    {#- The declared columns of the model, so that a column that went missing is an error and not a PASS, and those it has. -#}
    {%- if not model -%}
        {{ exceptions.raise_compiler_error(
            "matches_export: " ~ lake ~ " is no model of the project; name the columns to compare with `columns:`."
        ) }}
    {%- endif -%}
    {%- set names = model.columns.keys() | list -%}
    {%- set known = (names + key) | map('lower') | list -%}
    {%- for row in run_query('describe query select * from ' ~ lake).rows if row[0] | lower not in known -%}
        {%- do names.append(row[0] | lower) -%}
    {%- endfor -%}
    {{ return(names | reject('in', key) | list) }}
{%- endmacro -%}

{%- macro _declared_rules(model) -%}
    {%- set rules = {} -%}
    {%- for column in (model.columns.values() if model else []) if column.config.get('meta', {}).get('reconcile') -%}
        {%- do rules.update({column.name: column.config.meta.reconcile}) -%}
    {%- endfor -%}
    {{ return(rules) }}
{%- endmacro -%}

{%- macro _sensitive_columns(model, names) -%}
    {#- By the names that are compared, which a test may write in capitals. -#}
    {%- set declared = [] -%}
    {%- for column in (model.columns.values() if model else []) if column.config.get('meta', {}).get('sensitive') -%}
        {%- do declared.append(column.name | lower) -%}
    {%- endfor -%}
    {%- set sensitive = [] -%}
    {%- for name in names if name | lower in declared -%}
        {%- do sensitive.append(name) -%}
    {%- endfor -%}
    {{ return(sensitive) }}
{%- endmacro -%}

{%- macro _model_of(relation) -%}
    {#- With `config.where` dbt hands a test a select from the model instead of the model. -#}
    {%- set text = (relation | string).replace('`', '') -%}
    {%- for node in graph.nodes.values() if node.resource_type in ['model', 'snapshot', 'seed'] -%}
        {%- set name = node.schema ~ '.' ~ node.alias -%}
        {%- if text == name or 'from ' ~ name ~ ' ' in text -%}
            {{ return(node) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return(none) }}
{%- endmacro -%}

{%- macro _rows_where(relation, where) -%}
    {{ return('(select * from ' ~ relation ~ ' where ' ~ where ~ ')' if where else relation) }}
{%- endmacro -%}

{%- macro _readable_rows(export, where, has_reasons) -%}
    {#- A row of an export that could not be read has NULLs instead of values, and equals nothing. -#}
    {%- set conditions = (['rejection_reason is null'] if has_reasons else []) + (['(' ~ where ~ ')'] if where else []) -%}
    {{ return(highwater._rows_where(export, conditions | join(' and '))) }}
{%- endmacro -%}

{%- macro _with_names_of_the_source(export, model) -%}
    {#- A staging model of an entity has its columns by their names inside the project, beside the project's own. -#}
    {%- set names = [(export.identifier if export.identifier is defined else '').split('__')[1:] | join('__'), model.name] if execute and model else [] -%}
    {%- set entity = namespace(columns=[]) -%}
    {%- for name in names if not entity.columns and ('model.' ~ project_name ~ '.' ~ name ~ '_changes') in graph.nodes -%}
        {%- set entity.columns = highwater.entity_columns(name) -%}
    {%- endfor -%}
    {%- set others = [] -%}
    {%- for column in entity.columns if column.own_name != column.name -%}
        {%- do others.append(column) -%}
    {%- endfor -%}
    {%- if not others -%}
        {{ return(export) }}
    {%- endif -%}
    {%- set there = adapter.get_columns_in_relation(export) | map(attribute='name') | list -%}
    {%- set renamed = others | selectattr('name', 'in', there) | list -%}
    {%- if not renamed -%}
        {{ return(export) }}
    {%- endif -%}
    {%- set hidden = renamed | map(attribute='own_name') | select('in', there) | list -%}
    (
        select
            *{{ ' except (`' ~ hidden | join('`, `') ~ '`)' if hidden }}
            {%- for column in renamed %},
            `{{ column.name }}` as `{{ column.own_name }}`
            {%- endfor %}
        from {{ export }}
    )
{%- endmacro -%}
