{%- macro baseline_condition(feed, otherwise=none) -%}
    {{ return('true' if feed_setting(feed, 'role') == 'baseline' else feed_setting(feed, 'baseline', otherwise)) }}
{%- endmacro -%}
