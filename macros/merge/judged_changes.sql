{%- macro judged_changes(arrivals, current, arriving) -%}
    {%- set key = highwater.entity_key(arriving.entity) -%}
    {%- set columns = highwater.entity_columns(arriving.entity) | map(attribute='name') | list + highwater.contract_columns() -%}
    {%- if is_incremental() and not arriving.rows %}
    {%- do highwater.handed_on().update({'is_empty': true}) %}
    -- nothing has arrived
    select * from {{ this }}
    where false
    {%- elif not key %}
    -- no key: nothing can be told about two records that are alike, so every one counts
    select
        {%- for column in columns %}
        `{{ column }}`,
        {%- endfor %}
        case when rejection_reason is not null then 'rejected' else 'applied' end as verdict,
        false as is_tied,
        {{ arriving.log_batch }} as log_batch
    from {{ arrivals }}
    {%- elif highwater.entity_setting(arriving.entity, 'partial_images', false) %}
    {{- highwater._classified_partial_images(arrivals, current, arriving, key, columns) }}
    {%- else %}
    {{- highwater._classified_whole_rows(arrivals, current, arriving, key, columns) }}
    {%- endif %}
{%- endmacro -%}

{%- macro _classified_whole_rows(arrivals, current, arriving, key, columns) -%}
    with

    ordered as (

        select
            *,
            case when rejection_reason is null then {{ highwater.total_order(arrivals) }} end as `change order`
        from {{ arrivals }}

    ),

    ranked as (

        select
            ordered.*,
            {{ highwater._follows_its_like(key) | indent(12) }} as `is copy`,
            -- the best of its batch, and the best there was before its batch
            max(ordered.`change order`) over of_batch as `batch order`,
            greatest(
                {{ current }}.`current order`,
                max(ordered.`change order`) over before_batch
            ) as `order before`
        from ordered
        {{- highwater._with_current(current, key) }}
        {{- highwater._windows_of_batches(key) }}

    )

    select
        {%- for column in columns %}
        `{{ column }}`,
        {%- endfor %}
        case
            when rejection_reason is not null then 'rejected'
            when `is copy` or `change order` <=> `order before` then 'duplicate'
            {%- if arriving.truncates %}
            when change_type = 'truncate'
                and change_sequence_number = {{ highwater.truncated_below(arriving, '>') | indent(16) }} then 'duplicate'
            when change_sequence_number < {{ highwater.truncated_below(arriving, '>=') | indent(12) }} then 'superseded'
            {%- endif %}
            {%- if highwater.entity_setting(arriving.entity, 'insert_only', false) %}
            -- rows never change: the one that came first stays, and has_inserts_only tells of another
            when `order before` is not null then 'superseded'
            {%- endif %}
            when `change order` < `batch order` or `change order` < `order before` then 'superseded'
            else 'applied'
        end as verdict,
        -- decided by less than the sequence, in its batch or against what there was
        coalesce(
            `change order` < `batch order` and change_sequence_number = `batch order`.change_sequence_number, false
        ) or coalesce(
            `change order` <> `order before` and change_sequence_number = `order before`.change_sequence_number, false
        ) as is_tied,
        {{ arriving.log_batch }} as log_batch
    from ranked
{%- endmacro -%}

{%- macro _classified_partial_images(arrivals, current, arriving, key, columns) -%}
    {%- set groups = highwater.column_groups(arriving) -%}
    {%- set truncated = highwater.truncated_below(arriving, '>=') if arriving.truncates else none %}
    with

    ordered as (

        select
            *,
            case when rejection_reason is null then {{ highwater.total_order(arrivals) }} end as `change order`
        from {{ arrivals }}

    ),

    -- what each change says something about: that the row is there, that it is gone, the columns it carries
    sided as (

        select
            *,
            case when not is_deleted then `change order` end as `order there`,
            case when is_deleted then `change order` end as `order gone`
            {%- for group in groups %},
            case
                when not is_deleted and (present_columns is null or array_contains(present_columns, '{{ group[0] }}'))
                    then `change order`
            end as `order of {{ group[0] }}`
            {%- endfor %}
        from ordered

    ),

    ranked as (

        select
            ordered.*,
            {{ highwater._follows_its_like(key) | indent(12) }} as `is copy`,
            -- the latest of its batch, and the latest there was before its batch
            {%- for side in ['there', 'gone'] %}
            max(ordered.`order {{ side }}`) over of_batch as `batch {{ side }}`,
            greatest(
                {{ current }}.`order {{ side }}`,
                max(ordered.`order {{ side }}`) over before_batch
            ) as `{{ side }} before`,
            {%- endfor %}
            {%- for group in groups %}
            max(ordered.`order of {{ group[0] }}`) over of_batch as `batch of {{ group[0] }}`,
            max(ordered.`order of {{ group[0] }}`) over before_batch as `arrived of {{ group[0] }}`,
            {{ current }}.`orders of {{ group[0] }}`,
            {%- endfor %}
            {{ arriving.log_batch }} as log_batch
        from sided as ordered
        {{- highwater._with_current(current, key) }}
        {{- highwater._windows_of_batches(key) }}

    ),

    -- columns that arrive together may have several current orders
    compared as (

        select
            *
            {%- for group in groups %},
            case
                when `orders of {{ group[0] }}` is null then array(`arrived of {{ group[0] }}`)
                else transform(`orders of {{ group[0] }}`, `order before` -> greatest(`order before`, `arrived of {{ group[0] }}`))
            end as `before of {{ group[0] }}`
            {%- endfor %}
        from ranked

    )

    select
        {%- for column in columns %}
        `{{ column }}`,
        {%- endfor %}
        case
            when rejection_reason is not null then 'rejected'
            when `is copy`
                or `change order` in (`there before`, `gone before`)
                {%- for group in groups %}
                or array_contains(`before of {{ group[0] }}`, `change order`)
                {%- endfor %}
                then 'duplicate'
            {%- if truncated %}
            when change_type = 'truncate'
                and change_sequence_number = {{ highwater.truncated_below(arriving, '>') | indent(16) }} then 'duplicate'
            when change_sequence_number < {{ truncated | indent(12) }} then 'superseded'
            when change_type = 'truncate' then 'applied'
            {%- endif %}
            -- a delete counts while it is the latest one and some column is older than it
            when is_deleted
                and `change order` >= `batch gone`
                and coalesce(`change order` > `gone before`, true)
                and (
                    {%- for group in groups %}
                    {{ 'or ' if not loop.first }}exists(
                        `before of {{ group[0] }}`,
                        `order before` -> coalesce(greatest(`batch of {{ group[0] }}`, `order before`) < `change order`, true)
                    )
                    {%- else %}
                    coalesce(greatest(`batch there`, `there before`) < `change order`, true)
                    {%- endfor %}
                )
                then 'applied'
            -- a live row counts while it is later than every delete and the latest for at least one column
            when not is_deleted
                and coalesce(`change order` > greatest(`batch gone`, `gone before`), true)
                and (
                    (`change order` >= `batch there` and coalesce(`change order` > `there before`, true))
                    {%- for group in groups %}
                    or (
                        `order of {{ group[0] }}` is not null
                        and `change order` >= `batch of {{ group[0] }}`
                        and exists(`before of {{ group[0] }}`, `order before` -> coalesce(`change order` > `order before`, true))
                    )
                    {%- endfor %}
                )
                then 'applied'
            else 'superseded'
        end as verdict,
        -- decided by less than the sequence, in its batch or against what there was
        rejection_reason is null and coalesce(exists(
            flatten(array(
                {%- for side in ['there', 'gone'] %}
                if(`order {{ side }}` is not null, array(`batch {{ side }}`, `{{ side }} before`), array()),
                {%- endfor %}
                {%- for group in groups %}
                if(`order of {{ group[0] }}` is not null, array_append(`before of {{ group[0] }}`, `batch of {{ group[0] }}`), array())
                {{- ',' if not loop.last }}
                {%- endfor %}
            )),
            `other order` -> `other order` <> `change order`
                and `other order`.change_sequence_number = change_sequence_number
        ), false) as is_tied,
        log_batch
    from compared
{%- endmacro -%}

{%- macro _with_current(current, key) %}
        left join {{ current }}
            on
                {%- for column in key %}
                {{ 'and ' if not loop.first }}ordered.`{{ column }}` = {{ current }}.`{{ column }}`
                {%- endfor %}
{%- endmacro -%}

{%- macro _windows_of_batches(key) %}
        window
            of_batch as (
                partition by {{ highwater._of_ordered(key) }}
                order by unix_micros(ordered.landed_at)
                range between current row and current row
            ),
            before_batch as (
                partition by {{ highwater._of_ordered(key) }}
                order by unix_micros(ordered.landed_at)
                range between unbounded preceding and 1 preceding
            )
{%- endmacro -%}

{%- macro _of_ordered(key) -%}
ordered.`{{ key | join('`, ordered.`') }}`
{%- endmacro -%}

{%- macro _follows_its_like(key) -%}
-- every window goes over one sort
lag(struct(ordered.landed_at, ordered.`change order`)) over (
    partition by {{ highwater._of_ordered(key) }}
    order by
        unix_micros(ordered.landed_at), ordered.`change order`,
        ordered.feed, ordered.source_file, ordered.source_line
) <=> struct(ordered.landed_at, ordered.`change order`)
{%- endmacro -%}
