{%- macro text_of_field(path, feed) -%}
    {%- set steps = highwater.steps_of_path(path) -%}
    {%- set first = highwater.sql_text(steps[0]) -%}
    {%- if not highwater.has_documents(feed) -%}
        {{ return('fields[' ~ first ~ ']' if steps | length == 1 else 'get_json_object(fields[' ~ first ~ '], ' ~ highwater.path_below(steps) ~ ')') }}
    {%- elif steps | length == 1 -%}
        {{ return('cast(document[' ~ first ~ '] as string)') }}
    {%- endif -%}
    {{ return("try_variant_get(document[" ~ first ~ '], ' ~ highwater.path_below(steps) ~ ", 'string')") }}
{%- endmacro -%}
