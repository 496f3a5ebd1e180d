{%- macro base_as_known(merged, facts, rule) -%}
    {#- Of a base near the size from which it is not written in every build the rows are counted; else their most is enough. -#}
    {%- set is_small = facts and (rule is string or facts.rows * 2 <= rule.base_rows | default(0, true)) -%}
    {%- if facts and not is_small and facts.held is none -%}
        {%- set found = highwater.rows_and_watermark(merged) -%}
        {%- do facts.update({'rows': found.rows, 'held': found.log_batch}) -%}
    {%- elif not facts -%}
        {%- set found = highwater.rows_and_watermark(merged) -%}
        {{ return({'rows': found.rows, 'applied': found.log_batch, 'held': found.log_batch}) }}
    {%- endif -%}
    {{ return(facts) }}
{%- endmacro -%}
