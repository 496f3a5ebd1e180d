{%- macro declared_fields(feed, document) -%}
    {%- set change = highwater.change_of_feed(feed) -%}
    {%- set row = change.get('row') -%}
    {%- if row is mapping -%}
        {%- set inner = 'get_json_object(' ~ document ~ ', ' ~ highwater.path_below([''] + highwater.steps_of_path(row.get('of', row.get('names')))) ~ ')' -%}
        {%- if 'names' in row -%}
from_json({{ inner }}, 'array<string>')
        {%- else -%}
transform(from_json({{ inner }}, 'array<map<string, string>>'), entry -> entry[{{ highwater.sql_text(row.name) }}])
        {%- endif -%}
    {%- elif row -%}
json_object_keys(get_json_object({{ document }}, {{ highwater.path_below([''] + highwater.steps_of_path(row)) }}))
    {%- else -%}
        {%- set patterns = [] -%}
        {%- for pattern in change.get('except', []) -%}
            {%- do patterns.append(modules.re.escape(pattern) | replace('\\*', '.*')) -%}
        {%- endfor -%}
filter(
    json_object_keys({{ document }}),
    field -> field not in ({{ highwater.quoted_texts(highwater.fields_of_declaration(change)) }})
    {%- if patterns %} and not field rlike {{ highwater.sql_text('^(' ~ patterns | join('|') ~ ')\\z') }}{% endif %}
)
    {%- endif -%}
{%- endmacro -%}
