{%- macro applied_since(log, entity, applied_batch, published) -%}
    select `{{ highwater.columns_of_change(entity) | join('`, `') }}`
    from {{ log }}
    where
        verdict = 'applied'
        and log_batch > {{ applied_batch }}
        {%- if published is not none %}
        and log_batch <= {{ published }}
        {%- endif %}
{%- endmacro -%}
