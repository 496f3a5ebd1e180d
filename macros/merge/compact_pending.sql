{%- macro compact_pending(merged, entity, cause) -%}
    {%- set key = entity_key(entity) -%}
    {%- set are_pending = "is_pending" ~ (
        " and change_type <> 'truncate'" if entity_setting(entity, 'truncates', false) else ''
    ) -%}
    {%- set pending = run_query(
        'select ' ~ (['count(*) as pending_rows', 'count(distinct `' ~ key | join('`, `') ~ '`) as pending_keys'] + key_ends(entity))
        | join(', ') ~ ' from ' ~ merged ~ ' where ' ~ are_pending
    ).rows -%}
    {%- if pending[0].pending_rows != pending[0].pending_keys -%}
        {{ exceptions.raise_compiler_error(
            merged ~ " was not compacted: " ~ pending[0].pending_rows ~ " pending rows have " ~ pending[0].pending_keys
            ~ " keys, and each key has one at the most. Somebody has written to the table. The test has_agreeing_layers "
            ~ "lists the keys; `highwater rebuild " ~ entity ~ "` writes the table again from its log."
        ) }}
    {%- endif -%}
    {#- A pending row hides its base row anyway, so the view shows the same rows before, between and after the two. -#}
    {%- do _delete_behind_pending(merged, entity, are_pending, pending) -%}
    update {{ merged }} set is_pending = false, is_new = false
    where
        {{ are_pending }}
        -- always so; it stands in the history of the table, where `highwater status` finds it
        and feed <> 'compacted by {{ cause }}'
{%- endmacro -%}

{%- macro _delete_behind_pending(merged, entity, are_pending, pending) -%}
    {%- set keys = '`' ~ entity ~ ' pending keys`' -%}
    {%- set rows = pending[0].pending_rows | int -%}
    {%- set buckets = rows // 4 + 1 -%}
    {%- if rows > 1000000 -%}
        {#- so many keys do not fit into a statement -#}
        {%- do run_query(_merge_behind_pending(merged, entity, are_pending, pending)) -%}
    {%- else -%}
        {%- do run_query('declare or replace variable ' ~ keys ~ ' array<array<' ~ _type_of_key(entity) ~ '>>') -%}
        {%- do run_query('set variable ' ~ keys ~ ' = ' ~ _bucketed_keys(merged, entity, are_pending, buckets)) -%}
        {%- do run_query(_delete_by_keys(merged, entity, keys, buckets, pending)) -%}
        {%- do run_query('drop temporary variable ' ~ keys) -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _delete_by_keys(merged, entity, keys, buckets, pending) -%}
    delete from {{ merged }} as base
    where
        not base.is_pending
        {%- for bound in key_bounds(entity, pending, 'base') %}
        and {{ bound }}
        {%- endfor %}
        -- is the key among the pending ones? A MERGE would read the base twice to find that out
        and array_contains(get({{ keys }}, {{ _place_of_key(entity, 'base', buckets) }}), {{ _key_of(entity, 'base') }})
{%- endmacro -%}

{%- macro _merge_behind_pending(merged, entity, are_pending, pending) -%}
    {%- set key = entity_key(entity) -%}
    merge into {{ merged }} as base
    using (
        select{{ broadcast_hint('waiting', pending[0].pending_rows | int) }} `{{ key | join('`, `') }}`
        from {{ merged }} as waiting
        where {{ are_pending }}
    ) as pending
        on
            not base.is_pending
            {%- for column in key %}
            and base.`{{ column }}` = pending.`{{ column }}`
            {%- endfor %}
            {%- for bound in key_bounds(entity, pending, 'base') %}
            and {{ bound }}
            {%- endfor %}
    when matched then delete
{%- endmacro -%}

{%- macro _bucketed_keys(merged, entity, are_pending, buckets) -%}
    (
        select transform(array_sort(collect_list(struct(bucket, keys))), bucketed -> bucketed.keys)
        from (
            select
                buckets.id as bucket,
                collect_list({{ _key_of(entity, 'pending') }}) filter (where pending.is_pending) as keys
            from range({{ buckets }}) as buckets
            left join (select * from {{ merged }} where {{ are_pending }}) as pending
                on buckets.id = {{ _place_of_key(entity, 'pending', buckets) }}
            group by buckets.id
        )
    )
{%- endmacro -%}

{%- macro _place_of_key(entity, side, buckets) -%}
cast(pmod(xxhash64({{ side }}.`{{ entity_key(entity) | join('`, ' ~ side ~ '.`') }}`), {{ buckets }}) as int)
{%- endmacro -%}

{%- macro _key_of(entity, side) -%}
    {%- set key = entity_key(entity) -%}
    {%- set columns = side ~ '.`' ~ key | join('`, ' ~ side ~ '.`') ~ '`' -%}
{{ columns if key | length == 1 else 'struct(' ~ columns ~ ')' }}
{%- endmacro -%}

{%- macro _type_of_key(entity) -%}
    {%- set declared = {} -%}
    {%- for column in entity_columns(entity) -%}
        {%- do declared.update({column.name: column.data_type}) -%}
    {%- endfor -%}
    {%- set fields = [] -%}
    {%- set key = entity_key(entity) -%}
    {%- for name in key -%}
        {%- do fields.append('`' ~ name ~ '`: ' ~ declared[name]) -%}
    {%- endfor -%}
    {{ return('struct<' ~ fields | join(', ') ~ '>' if key | length > 1 else declared[key[0]]) }}
{%- endmacro -%}
