{%- macro changes_to_take_in(log, entity, publications=none) -%}
    {%- set published = (highwater.published_log_batch(publications, entity) or 0) if execute and publications else none -%}
    {%- set due = {} -%}
    {%- if execute and is_incremental() -%}
        {%- do highwater._take_over_layers(this, entity) -%}
        {%- do due.update(highwater.due_compaction(this, log, entity, published)) -%}
        {%- if not due.cause -%}
            {%- set nothing = ', cast(null as array<string>) as present_columns' if highwater.entity_setting(entity, 'partial_images', false) else '' -%}
            {{ return('    select *' ~ nothing ~ ' from ' ~ this ~ '\n    where false\n    ' ~ highwater.nothing_to_write()) }}
        {%- endif -%}
    {%- elif execute and published is none -%}
        {%- do highwater._say_what_is_pending(entity, 0) -%}
    {%- endif -%}
    {{ highwater._applied_since(log, entity, due.taken_in | default(0), published) }}
    {%- if due.cause %}
        -- compaction: {{ tojson(due) }}
    {%- endif -%}
{%- endmacro -%}

{%- macro _applied_since(log, entity, taken_in, published) -%}
    select `{{ highwater._columns_of_change(entity) | join('`, `') }}`
    from {{ log }}
    where
        verdict = 'applied'
        and log_batch > {{ taken_in }}
        {%- if published is not none %}
        and log_batch <= {{ published }}
        {%- endif %}
{%- endmacro -%}

{%- macro _fold_columns() -%}
    {{ return(['column_orders', 'deleted_order', 'is_complete']) }}
{%- endmacro -%}
