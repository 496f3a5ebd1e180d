{%- macro broadcast_hint(relation, rows) -%}
    {#- Spark does not know how few rows these are, and would shuffle the big side; above this size it is right to. -#}
    {{- ' /*+ broadcast(' ~ relation ~ ') */' if rows <= 2000000 -}}
{%- endmacro -%}
