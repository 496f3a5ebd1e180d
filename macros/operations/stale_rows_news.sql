{%- macro stale_rows_news(stale, was_view) -%}
    {#- A row stays until a newer change of its key is accepted, or this one by a replay. -#}
    {%- set news = {'before': [], 'statements': [], 'then': highwater._stale_rows_gathered, 'queried': []} -%}
    {%- set of_ledger = highwater.ungathered_parts('stale_rows') -%}
    {%- set listed = [] -%}
    {%- if of_ledger -%}
        {%- for row in run_query('select distinct table_name from ' ~ stale).rows -%}
            {%- do listed.append(row[0]) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set parts = [] -%}
    {%- for part in of_ledger if highwater.entity_key(part.table_name) -%}
        {%- if part.rejected > 0 -%}
            {%- do parts.append({'where': [highwater.batches_of_part(part)], 'rows': highwater._stale_rows(part)}) -%}
        {%- endif -%}
        {%- if part.table_name in listed -%}
            {%- do news.queried.append(part) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do news.statements.extend(highwater.statements_of_parts(parts)) -%}
    {{ return(news) }}
{%- endmacro -%}

{%- macro _stale_rows_gathered(stale, news) -%}
    {%- for parts in news.queried | batch(highwater.tables_at_once()) -%}
        {%- do run_query(highwater._drop_rows_that_moved_on(stale, parts)) -%}
    {%- endfor -%}
    {%- if news.statements or news.queried -%}
        {%- do highwater.keep_watermarks_of_ledger('stale_rows') -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _stale_rows(part) -%}
    {%- set entity = part.table_name -%}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set newest_rejected = highwater._newest_rejected_of_keys(part) -%}
    select
        '{{ entity }}' as table_name,
        rejected.key_values,
        rejected.newest.*
    from (
        {{ newest_rejected | indent(8) }}
    ) as rejected
    left anti join (
        -- the current rows of these keys; the big table is read once, and never shuffled
        select{{ highwater.broadcast_hint('rejected_keys', part.rejected | int) }} current_rows.*
        from (
            {{ highwater._accepted_rows(entity) | indent(12) }}
        ) as current_rows
        left semi join (
            {{ newest_rejected | indent(12) }}
        ) as rejected_keys
            on
                {%- for column in key %}
                {{ 'and ' if not loop.first }}current_rows.`{{ column }}` = rejected_keys.`{{ column }}`
                {%- endfor %}
    ) as accepted
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}rejected.`{{ column }}` = accepted.`{{ column }}`
            {%- endfor %}
            and accepted.change_sequence_number >= rejected.newest.change_sequence_number
            {%- if highwater.entity_setting(entity, 'partial_images', false) %}
            {%- set values = highwater.quoted_texts(highwater.entity_columns(entity) | map(attribute='name') | reject('in', key) | list) %}
            -- whole, or by all of the columns that the rejected change carried
            and (accepted.column_orders is null or accepted.is_deleted or forall(
                array_intersect(array({{ values }}), coalesce(rejected.newest.present_columns, array({{ values }}))),
                carried -> coalesce(
                    accepted.column_orders[carried].change_sequence_number >= rejected.newest.change_sequence_number, false
                )
            ))
            {%- endif %}
{%- endmacro -%}

{%- macro _newest_rejected_of_keys(part) -%}
    {%- set entity = part.table_name -%}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set truncated = highwater._highest_truncate(entity) if highwater.entity_setting(entity, 'truncates', false) -%}
    select
        {%- for column in key %}
        `{{ column }}`,
        {%- endfor %}
        {{ highwater.key_as_json(entity) }} as key_values,
        max_by(
            struct(
                change_sequence_number,
                change_type,
                rejection_reason,
                rejection_detail,
                source_file,
                source_line,
                feed,
                landing_batch,
                landed_at,
                present_columns
            ),
            struct(change_sequence_number, landing_batch, source_file, source_line)
        ) as newest
    from {{ ref(project_name, entity ~ '_changes') }}
    where
        {{ highwater.batches_in_log(part) }}
        -- of these the key and the order are what the source has
        and rejection_reason in ('value_does_not_fit', 'partial_image', 'unreadable_commit_time', 'unknown_operation')
        and change_sequence_number > '{{ truncated or '' }}'
        {%- for column in key %}
        and `{{ column }}` is not null
        and not coalesce(contains(concat(' and ', rejection_detail), ' and {{ column }} = ["'), false)
        {%- endfor %}
    group by {{ highwater.quoted_names(key) }}
{%- endmacro -%}

{%- macro _accepted_rows(entity) -%}
    {#- The merged table, and changes of the log that it has not applied yet: it may be built later, or be held. -#}
    {%- set log = ref(project_name, entity ~ '_changes') -%}
    {%- set merged = adapter.get_relation(none, log.schema, entity ~ '_merged') -%}
    {%- set is_partial = highwater.entity_setting(entity, 'partial_images', false) -%}
    {%- if merged %}
    select
        {%- for column in highwater.entity_key(entity) %}
        `{{ column }}`,
        {%- endfor %}
        {%- if is_partial %}
        column_orders,
        {%- endif %}
        is_deleted,
        change_sequence_number
    from {{ merged }}

    union all
    {% endif %}
    select
        {%- for column in highwater.entity_key(entity) %}
        `{{ column }}`,
        {%- endfor %}
        {%- if is_partial %}
        {{ highwater.orders_of_present_columns('log') }} as column_orders,
        {%- endif %}
        is_deleted,
        change_sequence_number
    from {{ log }} as log
    where rejection_reason is null and log_batch > {{ highwater.newest_log_batch(merged) if merged else 0 }}
{%- endmacro -%}

{%- macro _highest_truncate(entity) -%}
    {{ return(run_query(
        'select max(change_sequence_number) from ' ~ ref(project_name, entity ~ '_changes')
        ~ " where rejection_reason is null and change_type = 'truncate'"
    ).rows[0][0]) }}
{%- endmacro -%}

{%- macro _drop_rows_that_moved_on(stale, parts) -%}
    merge into {{ stale }} as listed
    using (
        {%- for part in parts %}
        select
            '{{ part.table_name }}' as table_name,
            {{ highwater.key_as_json(part.table_name) }} as key_values,
            present_columns,
            false as is_rejected,
            change_sequence_number
        from {{ ref(project_name, part.table_name ~ '_changes') }}
        where
            {{ highwater.batches_in_log(part) }}
            and rejection_reason is null

        union all
        {% if highwater.entity_setting(part.table_name, 'truncates', false) %}
        -- a truncate is newer than every key
        select '{{ part.table_name }}', listed.key_values, null, false, truncated.change_sequence_number
        from {{ stale }} as listed
        cross join (
            select max(change_sequence_number) as change_sequence_number
            from {{ ref(project_name, part.table_name ~ '_changes') }}
            where
                {{ highwater.batches_in_log(part) }}
                and rejection_reason is null
                and change_type = 'truncate'
        ) as truncated
        where listed.table_name = '{{ part.table_name }}'

        union all
        {% endif %}
        {% endfor %}
        -- of several rejected changes of a key the newest is listed
        select table_name, key_values, null, true, change_sequence_number
        from {{ stale }}
    ) as newer
        on
            listed.table_name = newer.table_name
            and listed.key_values = newer.key_values
            and (
                listed.change_sequence_number < newer.change_sequence_number
                or (listed.change_sequence_number = newer.change_sequence_number and not newer.is_rejected)
            )
            -- whole, or by all of the columns that the rejected change carried
            and (
                newer.present_columns is null
                or coalesce(size(array_except(listed.present_columns, newer.present_columns)) = 0, false)
            )
    when matched then delete
{%- endmacro -%}
