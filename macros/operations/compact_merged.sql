{%- macro compact_merged(entity) -%}
    {%- do run_query(compact_pending(_built_relation(entity ~ '_merged'), entity)) -%}
{%- endmacro -%}
