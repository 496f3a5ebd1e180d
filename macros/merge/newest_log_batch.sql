{%- macro newest_log_batch(relation) -%}
    {{ return((run_query('select max(log_batch) from ' ~ relation).rows[0][0] or 0) | int) }}
{%- endmacro -%}
