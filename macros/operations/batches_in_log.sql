{%- macro batches_in_log(part) -%}
    feed = '{{ part.feed }}' and landing_batch > {{ part.watermark }} and landing_batch <= {{ part.newest }}
{%- endmacro -%}
