{%- macro judged_changes(arrivals, standing, arriving) -%}
    {%- set key = entity_key(arriving.entity) -%}
    {%- set columns = entity_columns(arriving.entity) | map(attribute='name') | list + contract_columns() -%}
    {%- if is_incremental() and not arriving.rows %}
    -- nothing has arrived
    select * from {{ this }}
    where false
    {%- elif not key %}
    -- no key: nothing can be told about two records that are alike, so every one counts
    select
        {%- for column in columns %}
        {{ column }},
        {%- endfor %}
        case when rejection_reason is not null then 'rejected' else 'applied' end as verdict,
        false as is_tied,
        false as is_new_key,
        {{ arriving.log_batch }} as log_batch
    from {{ arrivals }}
    {%- elif entity_setting(arriving.entity, 'partial_images', false) %}
    {{- _judged_partial_images(arrivals, standing, arriving, key, columns) }}
    {%- else %}
    {{- _judged_whole_rows(arrivals, standing, arriving, key, columns) }}
    {%- endif %}
{%- endmacro -%}

{%- macro _judged_whole_rows(arrivals, standing, arriving, key, columns) -%}
    {%- set by_key -%}
        {%- for column in key %}ordered.{{ column }}{{ ', ' if not loop.last }}{% endfor -%}
    {%- endset %}
    with

    ordered as (

        select
            *,
            case when rejection_reason is null then {{ total_order(arrivals) }} end as change_order
        from {{ arrivals }}

    ),

    ranked as (

        select
            ordered.*,
            not coalesce({{ standing }}.is_merged, false) as is_new_key,
            {{ _follows_its_like(by_key) | indent(12) }} as is_copy,
            -- the best of its batch, and the best there was before its batch
            max(ordered.change_order) over (
                partition by {{ by_key }}
                order by unix_micros(ordered.landed_at)
                range between current row and current row
            ) as batch_order,
            greatest(
                {{ standing }}.standing_order,
                max(ordered.change_order) over (
                    partition by {{ by_key }}
                    order by unix_micros(ordered.landed_at)
                    range between unbounded preceding and 1 preceding
                )
            ) as order_before
        from ordered
        left join {{ standing }}
            on
                {%- for column in key %}
                {{ 'and ' if not loop.first }}ordered.{{ column }} = {{ standing }}.{{ column }}
                {%- endfor %}

    )

    select
        {%- for column in columns %}
        {{ column }},
        {%- endfor %}
        case
            when rejection_reason is not null then 'rejected'
            when is_copy or change_order <=> order_before then 'duplicate'
            {%- if arriving.truncates %}
            when change_type = 'truncate'
                and change_sequence_number = {{ truncated_below(arriving, '>') | indent(16) }} then 'duplicate'
            when change_sequence_number < {{ truncated_below(arriving, '>=') | indent(12) }} then 'superseded'
            {%- endif %}
            {%- if entity_setting(arriving.entity, 'insert_only', false) %}
            -- rows never change: the one that came first stays, and has_inserts_only tells of another
            when order_before is not null then 'superseded'
            {%- endif %}
            when change_order < batch_order or change_order < order_before then 'superseded'
            else 'applied'
        end as verdict,
        -- decided by less than the sequence, in its batch or against what there was
        coalesce(
            change_order < batch_order and change_sequence_number = batch_order.change_sequence_number, false
        ) or coalesce(
            change_order <> order_before and change_sequence_number = order_before.change_sequence_number, false
        ) as is_tied,
        is_new_key,
        {{ arriving.log_batch }} as log_batch
    from ranked
{%- endmacro -%}

{%- macro _judged_partial_images(arrivals, standing, arriving, key, columns) -%}
    {%- set values = entity_columns(arriving.entity) | map(attribute='name') | reject('in', key) | list -%}
    {%- set by_key -%}
        {%- for column in key %}ordered.{{ column }}{{ ', ' if not loop.last }}{% endfor -%}
    {%- endset -%}
    {%- set sides = ['is_there', 'is_gone'] + values -%}
    {%- set truncated = truncated_below(arriving, '>=') if arriving.truncates else none %}
    with

    ordered as (

        select
            *,
            case when rejection_reason is null then {{ total_order(arrivals) }} end as change_order
        from {{ arrivals }}

    ),

    -- what each change says something about: that the row is there, that it is gone, the columns it carries
    sided as (

        select
            *,
            case when not is_deleted then change_order end as order_of_is_there,
            case when is_deleted then change_order end as order_of_is_gone,
            {%- for column in values %}
            case
                when not is_deleted and (present_columns is null or array_contains(present_columns, '{{ column }}'))
                    then change_order
            end as order_of_{{ column }}{{ ',' if not loop.last }}
            {%- endfor %}
        from ordered

    ),

    ranked as (

        select
            ordered.*,
            not coalesce({{ standing }}.is_merged, false) as is_new_key,
            {{ _follows_its_like(by_key) | indent(12) }} as is_copy,
            -- the latest of its batch, and the latest there was before its batch
            struct(
                {%- for side in sides %}
                max(ordered.order_of_{{ side }}) over (
                    partition by {{ by_key }}
                    order by unix_micros(ordered.landed_at)
                    range between current row and current row
                ) as {{ side }}{{ ',' if not loop.last }}
                {%- endfor %}
            ) as batch,
            struct(
                {%- for side in sides %}
                greatest(
                    {{ standing }}.order_of_{{ side }},
                    max(ordered.order_of_{{ side }}) over (
                        partition by {{ by_key }}
                        order by unix_micros(ordered.landed_at)
                        range between unbounded preceding and 1 preceding
                    )
                ) as {{ side }}{{ ',' if not loop.last }}
                {%- endfor %}
            ) as earlier
        from sided as ordered
        left join {{ standing }}
            on
                {%- for column in key %}
                {{ 'and ' if not loop.first }}ordered.{{ column }} = {{ standing }}.{{ column }}
                {%- endfor %}

    )

    select
        {%- for column in columns %}
        {{ column }},
        {%- endfor %}
        case
            when rejection_reason is not null then 'rejected'
            when is_copy or exists(
                array({% for side in sides %}earlier.{{ side }}{{ ', ' if not loop.last }}{% endfor %}),
                met -> met = change_order
            ) then 'duplicate'
            {%- if truncated %}
            when change_type = 'truncate'
                and change_sequence_number = {{ truncated_below(arriving, '>') | indent(16) }} then 'duplicate'
            when change_sequence_number < {{ truncated | indent(12) }} then 'superseded'
            when change_type = 'truncate' then 'applied'
            {%- endif %}
            -- a delete counts while it is the latest one and some column is older than it
            when is_deleted
                and change_order >= batch.is_gone
                and coalesce(change_order > earlier.is_gone, true)
                and (
                    {%- for column in values %}
                    {{ 'or ' if not loop.first }}coalesce(greatest(batch.{{ column }}, earlier.{{ column }}) < change_order, true)
                    {%- else %}
                    coalesce(greatest(batch.is_there, earlier.is_there) < change_order, true)
                    {%- endfor %}
                )
                then 'applied'
            -- a live row counts while it is later than every delete and the latest for at least one column
            when not is_deleted
                and coalesce(change_order > greatest(batch.is_gone, earlier.is_gone), true)
                and (
                    {%- for side in ['is_there'] + values %}
                    {{ 'or ' if not loop.first }}(
                        order_of_{{ side }} is not null
                        and change_order >= batch.{{ side }}
                        and coalesce(change_order > earlier.{{ side }}, true)
                    )
                    {%- endfor %}
                )
                then 'applied'
            else 'superseded'
        end as verdict,
        -- decided by less than the sequence, in its batch or against what there was
        rejection_reason is null and exists(
            array(
                {%- for side in sides %}
                case when order_of_{{ side }} is not null then batch.{{ side }} end,
                case when order_of_{{ side }} is not null then earlier.{{ side }} end{{ ',' if not loop.last }}
                {%- endfor %}
            ),
            met -> met <> change_order and met.change_sequence_number = change_sequence_number
        ) as is_tied,
        is_new_key,
        {{ arriving.log_batch }} as log_batch
    from ranked
{%- endmacro -%}

{%- macro _follows_its_like(by_key) -%}
-- every window goes over one sort
lag(struct(ordered.landed_at, ordered.change_order)) over (
    partition by {{ by_key }}
    order by
        unix_micros(ordered.landed_at), ordered.change_order,
        ordered.feed, ordered.source_file, ordered.source_line
) <=> struct(ordered.landed_at, ordered.change_order)
{%- endmacro -%}
