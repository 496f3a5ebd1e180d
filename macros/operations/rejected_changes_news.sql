{%- macro rejected_changes_news(rejected, was_view) -%}
    {%- set news = {
        'before': [], 'statements': [], 'then': highwater._rejected_changes_gathered,
        'of_ledger': highwater.ungathered_parts('rejected_changes'),
    } -%}
    {%- set parts = [] -%}
    {%- for part in news.of_ledger if part.rejected > 0 -%}
        {%- do parts.append({'where': [highwater.batches_of_part(part)], 'rows': highwater._rejected_rows(part)}) -%}
    {%- endfor -%}
    {%- for statement in highwater.statements_of_parts(parts) -%}
        {%- do news.statements.append({'where': statement.where, 'rows': highwater._with_what_to_do(statement.rows)}) -%}
    {%- endfor -%}
    {{ return(news) }}
{%- endmacro -%}

{%- macro _rejected_changes_gathered(rejected, news) -%}
    {#- What is rejected stays until a replay brings it again, by file and line, and it is accepted. -#}
    {%- set listed = [] -%}
    {%- if news.of_ledger -%}
        {%- for row in run_query('select distinct table_name, feed from ' ~ rejected).rows -%}
            {%- do listed.append((row[0], row[1])) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set queried = [] -%}
    {%- for part in news.of_ledger if (part.table_name, part.feed) in listed -%}
        {%- do queried.append(part) -%}
    {%- endfor -%}
    {%- for parts in queried | batch(highwater.tables_at_once()) -%}
        {%- for row in run_query(highwater._counted_repaired_records(rejected, parts)).rows if row[1] > 0 -%}
            {%- do run_query(highwater._drop_repaired_records(rejected, parts[row[0] | int])) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if news.statements or queried -%}
        {%- do highwater.keep_watermarks_of_ledger('rejected_changes') -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _rejected_rows(part) -%}
    select
        '{{ part.table_name }}' as table_name,
        rejection_reason,
        rejection_detail,
        source_file,
        source_line,
        feed,
        landing_batch,
        landed_at,
        record
    from {{ ref(project_name, part.table_name ~ '_changes') }}
    where
        {{ highwater.batches_in_log(part) }}
        and rejection_reason is not null
        and not is_derived
{%- endmacro -%}

{%- macro _with_what_to_do(rejected_rows) -%}
    select
        rejected.table_name,
        rejected.rejection_reason,
        rejected.rejection_detail,
        rejection_reasons.what_to_do,
        rejected.source_file,
        rejected.source_line,
        rejected.feed,
        rejected.landing_batch,
        rejected.landed_at,
        case
            when is_valid_utf8(cast(rejected.record as string)) then cast(rejected.record as string)
            else concat('bytes in hex: ', hex(rejected.record))
        end as text
    from (
        {{ rejected_rows | indent(8) }}
    ) as rejected
    left join {{ ref('rejection_reasons') }} as rejection_reasons
        on rejected.rejection_reason = rejection_reasons.rejection_reason
{%- endmacro -%}

{%- macro _repaired_records(part) -%}
    select distinct
        source_file,
        source_line
    from {{ ref(project_name, part.table_name ~ '_changes') }}
    where
        {{ highwater.batches_in_log(part) }}
        and rejection_reason is null
        and source_file is not null
{%- endmacro -%}

{%- macro _counted_repaired_records(rejected, parts) -%}
    {%- for part in parts %}
    {%- if not loop.first %}

    union all
    {%- endif %}

    select
        {{ loop.index0 }} as ordinal,
        count(*) as repaired
    from {{ rejected }} as rejected
    inner join (
        {{ highwater._repaired_records(part) | indent(8) }}
    ) as accepted
        on rejected.source_file = accepted.source_file and rejected.source_line = accepted.source_line
    where rejected.table_name = '{{ part.table_name }}' and rejected.feed = '{{ part.feed }}'
    {%- endfor %}
{%- endmacro -%}

{%- macro _drop_repaired_records(rejected, part) -%}
    merge into {{ rejected }} as rejected
    using (
        {{ highwater._repaired_records(part) | indent(8) }}
    ) as accepted
        on
            rejected.table_name = '{{ part.table_name }}'
            and rejected.feed = '{{ part.feed }}'
            and rejected.source_file = accepted.source_file
            and rejected.source_line = accepted.source_line
    when matched then delete
{%- endmacro -%}
