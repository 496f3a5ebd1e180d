{%- macro changes_to_take_in(log, entity, publications=none) -%}
    {%- set taken_in = 0 -%}
    {%- set published = (published_log_batch(publications, entity) or 0) if execute and publications else none -%}
    {%- set upto = ' and log_batch <= ' ~ published if published is not none else '' -%}
    {%- if execute and is_incremental() -%}
        {#- as a rule the newest one is to be taken in and the one before it has been -#}
        {%- set newest = _newest_applied(log, newest_log_batch(log) if published is none else published | int, upto) -%}
        {%- set taken_in = newest_log_batch(this, newest | last) if newest else 0 -%}
        {%- if taken_in >= (newest | first | default(0)) -%}
            {%- set nothing = ', cast(null as array<string>) as present_columns' if entity_setting(entity, 'partial_images', false) else '' -%}
            {{ return('    select *' ~ nothing ~ ' from ' ~ this ~ '\n    where false ' ~ _all_taken_in()) }}
        {%- endif -%}
    {%- endif -%}
    {%- set applied = "verdict = 'applied' and log_batch > " ~ taken_in ~ upto -%}
    {%- set key = entity_key(entity) -%}
    select
        {%- if is_incremental() %}
        true as is_pending,
        {{ 'based.`is based` is null' if publications else 'is_new_key' }} as is_new,
        {%- else %}
        -- the first build writes base rows only; truncates are for the view to see, and never leave the pending layer
        {{ _stays_pending(entity) }} as is_pending,
        false as is_new,
        {%- endif %}
        {%- for column in _columns_of_change(entity) %}
        {{ 'log.' if publications }}`{{ column }}`{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ log }}{{ ' as log' if publications }}
    {%- if publications and is_incremental() %}
    -- held changes are taken in later than they were judged: what has a base row is asked now
    left join (
        select{{ broadcast_hint('arriving', 0) }} distinct
            {%- for column in key %}
            base.`{{ column }}`,
            {%- endfor %}
            true as `is based`
        from {{ this }} as base
        inner join (select `{{ key | join('`, `') }}` from {{ log }} where {{ applied }}) as arriving
            on
                {%- for column in key %}
                {{ 'and ' if not loop.first }}base.`{{ column }}` = arriving.`{{ column }}`
                {%- endfor %}
        where not base.is_pending
    ) as based
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}log.`{{ column }}` = based.`{{ column }}`
            {%- endfor %}
    {%- endif %}
    where {{ applied }}
{%- endmacro -%}

{%- macro _fold_columns() -%}
    {{ return(['column_orders', 'deleted_order', 'is_complete']) }}
{%- endmacro -%}

{%- macro _newest_applied(log, last, upto='') -%}
    {#- The two newest log batches of which something was applied; the whole log is asked only where a run of others came last. -#}
    {%- set found = [] -%}
    {%- for since in ([last - 10, 0] if last > 10 else [0]) -%}
        {%- if found | length < 2 -%}
            {%- do found.clear() -%}
            {%- do found.extend(run_query(
                "select distinct log_batch from " ~ log ~ " where verdict = 'applied' and log_batch > " ~ since ~ upto
                ~ " order by log_batch desc limit 2"
            ).rows | map(attribute=0) | map('int')) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro -%}

{%- macro _all_taken_in() -%}
    {#- The mark of a statement that has no row; the merge looks for it and does not ask the lake again. -#}
    {{ return('-- everything is taken in') }}
{%- endmacro -%}
