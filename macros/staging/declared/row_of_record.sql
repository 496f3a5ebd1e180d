{%- macro row_of_record(row, feed) -%}
    {%- if row is none -%}
        {{ return('cast(document as map<string, string>)') }}
    {%- elif row is string -%}
        {{ return(highwater._value_at(row, feed, 'map<string, string>')) }}
    {%- elif 'names' in row -%}
        {%- set names = highwater._value_at(row.names, feed, 'array<string>') -%}
        {%- set values = highwater._value_at(row['values'], feed, 'array<string>') %}
case
    when size({{ names }}) = size({{ values }}) and size(array_distinct(array_compact({{ names }}))) = size({{ names }})
        then map_from_arrays({{ names }}, {{ values }})
end
    {%- else %}
        {%- set entries = highwater._value_at(row.of, feed, 'array<map<string, string>>') -%}
        {%- set names = 'transform(' ~ entries ~ ', entry -> entry[' ~ highwater.sql_text(row.name) ~ '])' %}
case
    when size(array_distinct(array_compact({{ names }}))) = size({{ entries }})
        then map_from_arrays({{ names }}, transform({{ entries }}, entry -> entry[{{ highwater.sql_text(row.value) }}]))
end
    {%- endif -%}
{%- endmacro -%}

{%- macro _value_at(path, feed, type) -%}
    {%- set steps = highwater.steps_of_path(path) -%}
    {%- set first = highwater.sql_text(steps[0]) -%}
    {%- if steps | length == 1 -%}
        {{ return('try_cast(document[' ~ first ~ '] as ' ~ type ~ ')') }}
    {%- endif -%}
    {{ return("try_variant_get(document[" ~ first ~ '], ' ~ highwater.path_below(steps) ~ ", '" ~ type ~ "')") }}
{%- endmacro -%}
