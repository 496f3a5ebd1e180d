{%- macro text_of_field(path, feed) -%}
    {%- set steps = highwater.steps_of_path(path) -%}
    {%- set first = highwater.sql_text(steps[0]) -%}
    {%- if steps | length == 1 -%}
        {{ return('cast(document[' ~ first ~ '] as string)') }}
    {%- endif -%}
    {{ return("try_variant_get(document[" ~ first ~ '], ' ~ highwater.path_below(steps) ~ ", 'string')") }}
{%- endmacro -%}
