{%- macro keep_watermarks_of_feeds(model_name, watermarks) -%}
    {%- set rows = [] -%}
    {%- for watermark in watermarks -%}
        {%- do rows.append("('" ~ model_name ~ "', '" ~ watermark.feed ~ "', null, '" ~ watermark.declaration ~ "', " ~ watermark.landing_batch ~ 'L)') -%}
    {%- endfor -%}
    {%- if rows -%}
        {%- do run_query(
            'insert into ' ~ highwater.gathered_batches() ~ " replace where model = '" ~ model_name ~ "' and feed in ('"
            ~ watermarks | map(attribute='feed') | join("', '") ~ "') values " ~ rows | join(', ')
        ) -%}
    {%- endif -%}
{%- endmacro -%}
