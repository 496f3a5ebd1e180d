{%- macro hand_over(kind, value) -%}
    {#- A macro of its own, for its callers call a relation `log`. -#}
    {%- do log(tojson({'highwater': kind, 'value': value})) -%}
{%- endmacro -%}
