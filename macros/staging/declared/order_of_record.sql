{%- macro order_of_record(order, feed) -%}
    {%- set parts = [] -%}
    {%- for section in highwater.sections_of_order(order, feed) -%}
        {%- do parts.append(dict(section, text='get(order_texts, ' ~ loop.index0 ~ ')')) -%}
    {%- endfor -%}
    {%- if order[0] != 'kafka' -%}
        {{- highwater.sortable_sequence(parts) -}}
    {%- else -%}
concat(
    {{ highwater.kafka_offset(feed, "change_type <=> 'truncate'") | indent(4) }}
    {%- if parts %},
    '/',
    {{ highwater.sortable_sequence(parts) | indent(4) }}
    {%- endif %}
)
    {%- endif -%}
{%- endmacro -%}
