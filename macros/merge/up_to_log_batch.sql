{%- macro up_to_log_batch(last, prefix='') -%}
    {{ return(' and ' ~ prefix ~ 'log_batch <= ' ~ last if last is not none else '') }}
{%- endmacro -%}
