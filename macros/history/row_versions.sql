{%- macro row_versions(
    changes, log, entity, tracked=none, ignored=[],
    with_others=is_incremental(), last=highwater.last_log_batch_shown(entity)
) -%}
    {%- set columns = highwater.columns_in_history(entity) -%}
    {%- set tracked = highwater._tracked_columns(entity, tracked, ignored) -%}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set truncates = highwater.entity_setting(entity, 'truncates', false) -%}
    {%- if execute and not key -%}
        {{ exceptions.raise_compiler_error(
            entity ~ " has no key, so it has no versions: two records that are alike may be two rows or one. "
            ~ "Declare its key in the YAML of " ~ entity ~ "_changes, or remove the model " ~ entity ~ "_history."
        ) }}
    {%- endif -%}
    with
    {%- if truncates %}

    truncates as (

        select collect_list(
            struct(change_sequence_number, log_batch, {{ highwater.effective_at(log, entity) | indent(12) }} as effective_at)
        ) as truncates
        from {{ log }}
        where change_type = 'truncate' and verdict in ('applied', 'superseded'){{ highwater.up_to_log_batch(last) }}

    ),
    {%- endif %}

    {%- if highwater.entity_setting(entity, 'partial_images', false) %}

    {{- highwater._states_of_partial_images(changes, key, columns, truncates) }}
    {%- else %}

    -- ties: one state per sequence
    states as (

        select
            key,
            change_sequence_number,
            max_by(image, {{ highwater.total_order(changes) }}) as image,
            bool_and(is_deleted) as is_deleted,
            min(effective_at) as effective_at,
            min(log_batch) as log_batch
        from {{ changes }}
        group by key, change_sequence_number

    ),
    {%- endif %}

    {%- if truncates %}

    -- a truncate ends what is below it
    bounded as (

        select
            states.*,
            array_min(transform(
                filter(truncates, met -> met.change_sequence_number > states.change_sequence_number),
                met -> struct(met.change_sequence_number, met.log_batch)
            )) as next_truncate,
            array_min(transform(
                filter(truncates, met -> met.change_sequence_number > states.change_sequence_number),
                met -> met.effective_at
            )) as truncated_at
        from states
        cross join truncates

    ),
    {%- endif %}

    opened as (

        select
            *,
            coalesce(
                lag(is_deleted) over (partition by key order by change_sequence_number) <> is_deleted
                {%- if truncates %}
                or lag(next_truncate.change_sequence_number) over (
                    partition by key order by change_sequence_number
                ) <= change_sequence_number
                {%- endif %}
                {%- if tracked %}
                or (
                    not is_deleted
                    and not struct({% for column in tracked %}image.`{{ column }}`{{ ', ' if not loop.last }}{% endfor %})
                    <=> lag(struct({% for column in tracked %}image.`{{ column }}`{{ ', ' if not loop.last }}{% endfor %})) over (
                        partition by key order by change_sequence_number
                    )
                )
                {%- endif %}
                or lag(key) over (partition by key order by change_sequence_number) is null,
                false
            ) as opens
        from {{ 'bounded' if truncates else 'states' }}

    ),

    numbered as (

        select
            *,
            count_if(opens) over (partition by key order by change_sequence_number) as number
        from opened

    ),

    versions as (

        select
            key,
            change_sequence_number,
            opens and not is_deleted as begins,
            max_by(image, change_sequence_number) over version as image,
            {%- if truncates %}
            least(
                min(next_truncate) over version,
                min(case when opens then struct(change_sequence_number, log_batch) end) over behind
            ) as closing,
            {%- else %}
            min(case when opens then struct(change_sequence_number, log_batch) end) over behind as closing,
            {%- endif %}
            min(effective_at) over version as valid_from,
            -- clocks go backwards at times: the earliest commit behind it ends it
            {%- if truncates %}
            least(
                min(truncated_at) over version,
                min(effective_at) over behind
            ) as superseded_at,
            {%- else %}
            min(effective_at) over behind as superseded_at,
            {%- endif %}
            max(log_batch) over version as log_batch
        from numbered
        window
            version as (partition by key, number),
            behind as (partition by key order by number range between 1 following and unbounded following)

    )

    select
        {%- for column in columns %}
        {{ 'key' if column.name in key else 'image' }}.`{{ column.name }}`{{ ' as `' ~ column.version_name ~ '`' if column.version_name != column.name }},
        {%- endfor %}
        change_sequence_number as valid_from_sequence,
        closing.change_sequence_number as valid_to_sequence,
        valid_from,
        case when closing is not null then greatest(valid_from, superseded_at) end as valid_to,
        {%- if with_others %}
        -- NULL: no version begins here, and what begins here in the table goes
        case when begins then closing is null end as is_current,
        {%- else %}
        closing is null as is_current,
        {%- endif %}
        greatest(log_batch, closing.log_batch) as log_batch
    from versions
    {%- if not with_others %}
    where begins
    {%- endif %}
{%- endmacro -%}

{%- macro _states_of_partial_images(changes, key, columns, truncates) %}

    -- what is known of a row after each change, column by column
    folded as (

        select
            key,
            change_sequence_number,
            min(effective_at) over (partition by key, change_sequence_number) as effective_at,
            min(log_batch) over (partition by key, change_sequence_number) as log_batch,
            lead(change_sequence_number) over (partition by key order by {{ highwater.total_order(changes) }}) as next_sequence,
            max({{ highwater.order_of_side(changes, 'is_there', false) }}) over so_far as order_there,
            {%- if truncates %}
            greatest(
                max({{ highwater.order_of_side(changes, 'is_gone', false) }}) over so_far,
                array_max(transform(
                    filter(truncates, met -> met.change_sequence_number <= {{ changes }}.change_sequence_number),
                    met -> struct(met.change_sequence_number, false as is_live, 0L as change_hash)
                ))
            ) as order_gone,
            {%- else %}
            max({{ highwater.order_of_side(changes, 'is_gone', false) }}) over so_far as order_gone,
            {%- endif %}
            {%- for column in columns if column.name not in key %}
            last_value(
                case
                    when not is_deleted and (present_columns is null or array_contains(present_columns, '{{ column.name }}'))
                        then struct({{ highwater.total_order(changes) }} as change_order, image.`{{ column.name }}` as value)
                end
            ) ignore nulls over so_far as `latest {{ column.name }}`{{ ',' if not loop.last }}
            {%- endfor %}
        from {{ changes }}
        {%- if truncates %}
        cross join truncates
        {%- endif %}
        window so_far as (partition by key order by {{ highwater.total_order(changes) }})

    ),

    states as (

        select
            key,
            change_sequence_number,
            struct(
                {%- for column in columns %}
                {%- if column.name in key %}
                key.`{{ column.name }}`{{ ',' if not loop.last }}
                {%- else %}
                case when {{ highwater._lives('`latest ' ~ column.name ~ '`') }} then `latest {{ column.name }}`.value end as `{{ column.name }}`{{ ',' if not loop.last }}
                {%- endif %}
                {%- endfor %}
            ) as image,
            not coalesce(order_there > order_gone, order_there is not null) as is_deleted,
            effective_at,
            log_batch
        from folded
        -- ties: one state per sequence
        where next_sequence is distinct from change_sequence_number

    ),
{%- endmacro -%}

{%- macro _lives(latest) -%}
coalesce({{ latest }}.change_order > order_gone, {{ latest }}.change_order is not null)
{%- endmacro -%}

{%- macro _tracked_columns(entity, tracked, ignored) -%}
    {%- if not execute -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set columns = {} -%}
    {%- set key = highwater.entity_key(entity) -%}
    {%- for column in highwater.entity_columns(entity) if column.name not in key -%}
        {%- do columns.update({column.own_name: column.name}) -%}
    {%- endfor -%}
    {%- if tracked is not none and ignored -%}
        {{ exceptions.raise_compiler_error(
            "row_versions of " ~ entity ~ " wants the columns to track or those to ignore, not both."
        ) }}
    {%- endif -%}
    {%- for name in (tracked or []) + ignored if name not in columns -%}
        {{ exceptions.raise_compiler_error(
            "row_versions of " ~ entity ~ " names '" ~ name ~ "', which is none of its columns beside the key: "
            ~ columns | join(', ') ~ "."
        ) }}
    {%- endfor -%}
    {%- set names = [] -%}
    {%- for name, column in columns.items() if (name in tracked if tracked is not none else name not in ignored) -%}
        {%- do names.append(column) -%}
    {%- endfor -%}
    {{ return(names) }}
{%- endmacro -%}
