{%- macro rows_as_of(log, entity, sequence=none, at=none, keys=none, log_batch=none) -%}
    {%- if execute -%}
        {%- do highwater._refuse_other_positions(sequence, at) -%}
    {%- endif -%}
    {%- if execute and log.identifier.endswith('_history') %}
    {{ highwater._versions_as_of(log, entity, sequence, at) }}
    {%- elif at is not none and highwater.entity_setting(entity, 'partial_images', false) %}
    with

    changes as (

        {{ highwater.changes_with_images(log, entity, {'watermark': none, 'rows': 0, 'last': none}) | indent(4) }}

    ),

    -- what a change does not carry comes from the changes below it, whatever their commit times
    versions as (

        {{ highwater.row_versions('changes', log, entity, with_others=false, last=none) | indent(4) }}

    )

    {{ highwater._versions_as_of('versions', entity, sequence, at) }}
    {%- else %}
    with

    changes as (

        select
            `{{ highwater.columns_of_change(entity) | join('`,\n            `') }}`
        from {{ log }}
        where
            verdict in ('applied', 'superseded')
            {%- if sequence is not none %}
            -- `0` comes behind `/`: what has further sections below this one is included
            and change_sequence_number < '{{ sequence }}0'
            {%- else %}
            and {{ highwater.effective_at(log, entity) | indent(12) }} <= timestamp '{{ at }}'
            {%- endif %}
            {{- highwater.up_to_log_batch(log_batch) }}

    ),
    {%- set relevant = 'changes_of_keys' if keys else 'changes' %}
    {%- if keys %}
    {#- `on`, for `using` puts the columns of the key first, and the truncates' stay where they are #}

    changes_of_keys as (

        select *
        from changes
        left semi join ({{ keys }}) as chosen_keys
            on
                {%- for column in highwater.entity_key(entity) %}
                {{ 'and ' if not loop.first }}changes.`{{ column }}` = chosen_keys.`{{ column }}`
                {%- endfor %}
        {%- if highwater.entity_setting(entity, 'truncates', false) %}

        union all

        select * from changes where change_type = 'truncate'
        {%- endif %}

    ),
    {%- endif %}

    latest as (

        {{ highwater.latest_change_per_key(relevant, entity) | indent(4) }}

    )

    select
        {%- for column in highwater.entity_columns(entity) %}
        {{ highwater.as_own_name(column) }}{{ ',' if not loop.last }}
        {%- endfor %}
    from latest
    where
        not is_deleted
        {%- if highwater.entity_setting(entity, 'truncates', false) %}
        -- a truncate hides every row below it
        and change_sequence_number >= (
            select coalesce(max(change_sequence_number), '') from changes where change_type = 'truncate'
        )
        {%- endif %}
    {%- endif -%}
{%- endmacro -%}

{%- macro _versions_as_of(versions, entity, sequence, at) -%}
    select
        {%- for column in highwater.columns_in_history(entity) %}
        `{{ column.version_name }}`{{ ' as `' ~ column.own_name ~ '`' if column.version_name != column.own_name }}{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ versions }}
    where
        {%- if sequence is not none %}
        valid_from_sequence < '{{ sequence }}0'
        and (valid_to_sequence is null or valid_to_sequence >= '{{ sequence }}0')
        {%- else %}
        valid_from <= timestamp '{{ at }}'
        and (valid_to is null or valid_to > timestamp '{{ at }}')
        {%- endif %}
{%- endmacro -%}

{%- macro _refuse_other_positions(sequence, at) -%}
    {%- if (sequence is none) == (at is none) -%}
        {{ exceptions.raise_compiler_error(
            "rows_as_of wants either a sequence or a time (at): it got " ~ ('none' if sequence is none else 'both') ~ "."
        ) }}
    {%- endif -%}
    {%- if sequence is not none and not modules.re.fullmatch('[0-9a-f]{16}(/[0-9a-f]{16}){0,5}', sequence | string) -%}
        {{ exceptions.raise_compiler_error(
            "'" ~ sequence ~ "' is no change_sequence_number: it must be sections of 16 lower-case hex digits joined by /, "
            ~ "of which the first is the epoch, for example 0000000000000000/00000000000eea8f."
        ) }}
    {%- endif -%}
{%- endmacro -%}
