{%- macro add_to_answer(kind, value) -%}
    {#- What a log or a base has met, beside what is known of its table; see answer_with_facts. -#}
    {%- do highwater.handed_on().setdefault('met', {}).setdefault(kind, []).append(value) -%}
{%- endmacro -%}
