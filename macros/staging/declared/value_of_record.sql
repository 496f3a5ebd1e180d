{%- macro value_of_record(expression, feed) -%}
    {%- set found = namespace(sql='', end=0) -%}
    {#- a text in quotes, or the path of a field -#}
    {%- for match in modules.re.finditer("'(?:[^'\\\\]|\\\\.)*'|\\$(?:(index)\\b|((?:\\.[A-Za-z_]\\w*|\\['[^']+'\\])+))", expression) -%}
        {%- if match.group(1) or match.group(2) -%}
            {%- set value = "fields['index']" if match.group(1) else highwater._text_at(match.group(2), feed) -%}
            {%- set found.sql = found.sql ~ expression[found.end:match.start()] ~ value -%}
            {%- set found.end = match.end() -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(found.sql ~ expression[found.end:]) }}
{%- endmacro -%}

{%- macro _text_at(path, feed) -%}
    {%- set steps = highwater._steps_of(path) -%}
    {%- set first = highwater.sql_text(steps[0]) -%}
    {%- if not highwater.has_documents(feed) -%}
        {{ return('fields[' ~ first ~ ']' if steps | length == 1 else 'get_json_object(fields[' ~ first ~ '], ' ~ highwater._json_path(steps) ~ ')') }}
    {%- elif steps | length == 1 -%}
        {{ return('cast(document[' ~ first ~ '] as string)') }}
    {%- endif -%}
    {{ return("try_variant_get(document[" ~ first ~ '], ' ~ highwater._json_path(steps) ~ ", 'string')") }}
{%- endmacro -%}

{%- macro _steps_of(path) -%}
    {%- set steps = [] -%}
    {%- for name, quoted in modules.re.findall("\\.([A-Za-z_]\\w*)|\\['([^']+)'\\]", path) -%}
        {%- do steps.append(name or quoted) -%}
    {%- endfor -%}
    {{ return(steps) }}
{%- endmacro -%}

{%- macro _json_path(steps) -%}
    {%- set quoted = [] -%}
    {%- for step in steps[1:] -%}
        {%- do quoted.append("['" ~ step ~ "']") -%}
    {%- endfor -%}
    {{ return(highwater.sql_text('$' ~ quoted | join)) }}
{%- endmacro -%}
