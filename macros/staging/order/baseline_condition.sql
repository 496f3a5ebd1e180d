{%- macro baseline_condition(feed, otherwise=none) -%}
    {{ return('true' if highwater.feed_setting(feed, 'role') == 'baseline' else highwater.feed_setting(feed, 'baseline', otherwise)) }}
{%- endmacro -%}
