{%- macro newest_log_batch(relation, expected=none) -%}
    {%- set question = 'select max(log_batch) from ' ~ relation -%}
    {#- the files that can have the expected one are few; the others are read only when none of them has it -#}
    {%- set found = run_query(question ~ ' where log_batch >= ' ~ expected).rows[0][0] if expected and expected > 0 else none -%}
    {{ return((found or run_query(question).rows[0][0] or 0) | int) }}
{%- endmacro -%}
