{%- macro new_arrivals(arriving) -%}
    {%- set columns = entity_columns(arriving.entity) | map(attribute='name') | list + contract_columns() -%}
    {%- for source in arriving.staged %}
    {%- if not loop.first %}

    union all

    {% endif -%}
    select
        {%- for column in columns %}
        {{ column }}{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ source.relation }}
    where landing_batch > {{ source.mark }}
    {%- endfor -%}
{%- endmacro -%}
