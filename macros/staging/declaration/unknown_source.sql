{%- macro unknown_source(feed, is_required=false) -%}
    {%- set declared = highwater.feed_setting(feed, 'epochs', []) | map(attribute='source') | select('defined') | list -%}
    {%- if declared %}
when source_identity is null or source_identity not in ({{ highwater.quoted_texts(declared) }}) then 'unknown_source'
    {%- elif is_required %}
when true then 'unknown_source'
    {%- endif -%}
{%- endmacro -%}
