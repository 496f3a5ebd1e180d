{%- macro applied_since(log, entity, taken_in, published) -%}
    select `{{ highwater.columns_of_change(entity) | join('`, `') }}`
    from {{ log }}
    where
        verdict = 'applied'
        and log_batch > {{ taken_in }}
        {%- if published is not none %}
        and log_batch <= {{ published }}
        {%- endif %}
{%- endmacro -%}
