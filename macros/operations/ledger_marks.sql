{%- macro ledger_marks() -%}
    {%- set marks = {} -%}
    {%- if execute and is_incremental() -%}
        {%- for row in run_query(
            'select table_name, feed, max(landing_batch) from ' ~ this ~ ' group by table_name, feed'
        ).rows -%}
            {%- do marks.update({row[0] ~ '/' ~ row[1]: row[2] | int}) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(marks) }}
{%- endmacro -%}
