{%- macro say_what_is_pending(entity, pending_rows) -%}
    {#- `highwater build` listens, and need not query. A macro of its own, for its callers call a relation `log`. -#}
    {%- do log(entity ~ ' leaves ' ~ pending_rows ~ ' changes pending') -%}
{%- endmacro -%}
