{%- macro has_clock(feed) -%}
    {{ return(highwater.feed_setting(feed, 'clock') != 'ignore' and highwater.clock_of_record(feed) is not none) }}
{%- endmacro -%}
