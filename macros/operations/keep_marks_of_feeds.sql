{%- macro keep_marks_of_feeds(model_name, marks) -%}
    {%- set rows = [] -%}
    {%- for mark in marks -%}
        {%- do rows.append("('" ~ model_name ~ "', '" ~ mark.feed ~ "', null, '" ~ mark.declaration ~ "', " ~ mark.landing_batch ~ 'L)') -%}
    {%- endfor -%}
    {%- if rows -%}
        {%- do run_query(
            'insert into ' ~ highwater.gathered_batches() ~ " replace where model = '" ~ model_name ~ "' and feed in ('"
            ~ marks | map(attribute='feed') | join("', '") ~ "') values " ~ rows | join(', ')
        ) -%}
    {%- endif -%}
{%- endmacro -%}
