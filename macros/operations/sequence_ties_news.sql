{%- macro sequence_ties_news(ties, was_view) -%}
    {%- set parts = [] -%}
    {#- ledgers of earlier versions did not count the ties of old keys -#}
    {%- for part in highwater.ungathered_parts('sequence_ties') if part.tied > 0 or was_view -%}
        {%- do parts.append({'where': [highwater.batches_of_part(part)], 'rows': highwater._tied_rows(part)}) -%}
    {%- endfor -%}
    {{ return({'before': [], 'statements': highwater.statements_of_parts(parts), 'then': highwater._sequence_ties_gathered}) }}
{%- endmacro -%}

{%- macro _sequence_ties_gathered(ties, news) -%}
    {%- if news.statements -%}
        {%- do highwater.keep_watermarks_of_ledger('sequence_ties') -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _tied_rows(part) -%}
    select
        '{{ part.table_name }}' as table_name,
        {{ highwater.key_as_json(part.table_name) }} as key_values,
        change_sequence_number,
        change_type,
        verdict,
        source_file,
        source_line,
        feed,
        landing_batch,
        landed_at
    from {{ ref(project_name, part.table_name ~ '_changes') }}
    where
        {{ highwater.batches_in_log(part) }}
        and is_tied
{%- endmacro -%}
