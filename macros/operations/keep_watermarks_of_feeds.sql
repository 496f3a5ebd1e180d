{%- macro keep_watermarks_of_feeds(model_name, watermarks) -%}
    {#- A commit costs more than to read the names of some batches again, so not every build makes one. -#}
    {%- set rows = [] -%}
    {%- set feeds = [] -%}
    {%- for watermark in watermarks
        if watermark.was.declaration != watermark.declaration or watermark.landing_batch >= watermark.was.landing_batch + 10 -%}
        {%- do feeds.append(watermark.feed) -%}
        {%- do rows.append("('" ~ model_name ~ "', '" ~ watermark.feed ~ "', null, '" ~ watermark.declaration ~ "', " ~ watermark.landing_batch ~ 'L)') -%}
    {%- endfor -%}
    {%- if rows -%}
        {%- do run_query(
            'insert into ' ~ highwater.gathered_batches() ~ " replace where model = '" ~ model_name ~ "' and feed in ('"
            ~ feeds | join("', '") ~ "') values " ~ rows | join(', ')
        ) -%}
    {%- endif -%}
{%- endmacro -%}
