{%- macro current_rows(merged, entity, publications=none, log=none) -%}
    {%- set key = entity_key(entity) -%}
    {%- set truncates = entity_setting(entity, 'truncates', false) -%}
    {%- set insert_only = not publications and entity_setting(entity, 'insert_only', false) -%}
    {%- set may_outlive = truncates and entity_setting(entity, 'partial_images', false) -%}
    {%- set highest_truncate = "(select coalesce(max(change_sequence_number), '') from " ~ merged
        ~ " where is_pending and change_type = 'truncate')" -%}
    {%- set truncated_below = '`truncated below`' if publications or may_outlive else highest_truncate -%}
    {%- if publications -%}
    {{ _published_layers(merged, entity, publications, log) }}

    {% endif -%}
    select
        {%- for column in entity_columns(entity) %}
        {%- if may_outlive and column.name not in key %}
        if(
            `column orders` is null or `column orders`['{{ column.name }}'].change_sequence_number >= `truncated below`,
            `{{ column.name }}`,
            null
        ) as `{{ column.own_name }}`{{ ',' if not loop.last }}
        {%- else %}
        {{ _as_own_name(column) }}{{ ',' if not loop.last }}
        {%- endif %}
        {%- endfor %}
    from {% if may_outlive %}(
        select
            *,
            -- those of rows that stand above a truncate with columns from below it
            if(
                exists(map_values(column_orders), `each order` -> `each order`.change_sequence_number < `truncated below`),
                column_orders,
                null
            ) as `column orders`
        from {% if publications %}layers
        cross join truncates
        {%- else %}(
            select
                *,
                {{ highest_truncate }} as `truncated below`
            from (
                {{ _base_and_pending(merged, key) | indent(16) }}
            )
        )
        {%- endif %}
    )
    {%- elif publications %}layers{{ '\n    cross join truncates' if truncates }}{% elif insert_only %}{{ merged }}{% else %}(
        {{ _base_and_pending(merged, key) | indent(8) }}
    )
    {%- endif %}
    where
        not is_deleted
        {%- if truncates %}
        -- a truncate hides every row below it
        and change_sequence_number >= {{ truncated_below }}
        {%- endif %}
        {%- if publications %}
        and (select is_one_moment from cut)
        {%- endif %}
{%- endmacro -%}

{%- macro _base_and_pending(merged, key) -%}
    {#- One scan for both layers: above a union Spark would hand every row of the base from one piece of code to another. -#}
select layered.*
from {{ merged }} as layered
left anti join (select `{{ key | join('`, `') }}` from {{ merged }} where is_pending) as pending
    on
        not layered.is_pending
        {%- for column in key %}
        and layered.`{{ column }}` = pending.`{{ column }}`
        {%- endfor %}
{%- endmacro -%}

{%- macro _published_layers(merged, entity, publications, log) -%}
    {%- set key = entity_key(entity) -%}
    {%- set columns = merged_columns(entity) -%}
    {%- set taken_in = '(select coalesce(max(log_batch), 0) from ' ~ merged ~ ')' -%}
    {%- set logged = '(select coalesce(max(log_batch), 0) from ' ~ log ~ ')' -%}
    {%- set published = logged if var('candidate', false) else
        "(select max_by(log_batches, publication)['" ~ entity ~ "'] from " ~ publications ~ ")" -%}
    with

    -- published, and not in the merged table yet
    published as (

        select
            true as is_pending,
            is_new_key as is_new,
            `{{ _columns_of_change(entity) | join('`,\n            `') }}`
        from {{ log }}
        where
            verdict = 'applied'
            and log_batch > {{ taken_in }}
            -- before its first publication a table shows what it has
            and log_batch <= {{ published }}

    ),

    {%- if entity_setting(entity, 'truncates', false) %}

    truncates as (

        select coalesce(max(change_sequence_number), '') as `truncated below`
        from (
            select change_sequence_number
            from {{ merged }}
            where is_pending and change_type = 'truncate'

            union all

            select change_sequence_number
            from published
            where change_type = 'truncate'
        )

    ),
    {%- endif %}

    latest as (

        {{ latest_change_per_key('published', entity, merged) | indent(4) }}

    ),

    layers as (

        select
            `{{ columns | join('`,\n            `') }}`
        from (
            {{ _base_and_pending(merged, key) | indent(12) }}
        ) as taken_in
        left anti join published
            on
                {%- for column in key %}
                {{ 'and ' if not loop.first }}taken_in.`{{ column }}` = published.`{{ column }}`
                {%- endfor %}

        union all

        select
            `{{ columns | join('`,\n            `') }}`
        from latest

    ),

    cut as (

        select
            -- the tables of one query may be of different moments: better no answer than half a publication
            case
                when coalesce(taken_in <= published and published <= logged, true) then true
                else raise_error('{{ entity }}: a publication came while this query was planned. Run it again; if it says so each time: highwater build')
            end as is_one_moment
        from (
            select
                {{ taken_in }} as taken_in,
                {{ logged }} as logged,
                {{ published }} as published
        )

    )
{%- endmacro -%}
