{%- macro rows_and_watermark(merged) -%}
    {%- set found = run_query('select count(*), max(log_batch) from ' ~ merged).rows[0] -%}
    {{ return({'rows': found[0] | int, 'log_batch': (found[1] or 0) | int}) }}
{%- endmacro -%}
