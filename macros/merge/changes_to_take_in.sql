{%- macro changes_to_take_in(log, entity) -%}
    {%- set taken_in = 0 -%}
    {%- if execute and is_incremental() -%}
        {%- set taken_in = (run_query('select max(log_batch) from ' ~ this).rows[0][0] or 0) | int -%}
        {%- if not run_query(
            "select 1 from " ~ log ~ " where verdict = 'applied' and log_batch > " ~ taken_in ~ " limit 1"
        ).rows | length -%}
            {%- set nothing = ', cast(null as array<string>) as present_columns' if entity_setting(entity, 'partial_images', false) else '' -%}
            {{ return('    select *' ~ nothing ~ ' from ' ~ this ~ '\n    where false ' ~ _all_taken_in()) }}
        {%- endif -%}
    {%- endif -%}
    {%- set applied = "verdict = 'applied' and log_batch > " ~ taken_in -%}
    {%- set columns = merged_columns(entity) | reject('in', ['is_pending', 'is_new'] + _fold_columns()) -%}
    select
        {%- if is_incremental() %}
        true as is_pending,
        is_new_key as is_new,
        {%- else %}
        -- the first build writes base rows only; truncates are for the view to see, and never leave the pending layer
        {{ "change_type = 'truncate'" if entity_setting(entity, 'truncates', false) else 'false' }} as is_pending,
        false as is_new,
        {%- endif %}
        {%- if entity_setting(entity, 'partial_images', false) %}
        present_columns,
        {%- endif %}
        {%- for column in columns %}
        {{ column }}{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ log }}
    where {{ applied }}
{%- endmacro -%}

{%- macro _fold_columns() -%}
    {{ return(['column_orders', 'deleted_order', 'is_complete']) }}
{%- endmacro -%}

{%- macro _all_taken_in() -%}
    {#- The mark of a statement that has no row; the merge looks for it and does not ask the lake again. -#}
    {{ return('-- everything is taken in') }}
{%- endmacro -%}
