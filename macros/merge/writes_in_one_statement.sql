{%- macro writes_in_one_statement() -%}
    {%- set is_one_statement = config.get('incremental_strategy') == 'append' or 'merged' in config.get('meta', {}) -%}
    {#- what a schema change is found by is the view -#}
    {{ return(is_one_statement and model.language == 'sql' and config.get('on_schema_change', 'ignore') == 'ignore') }}
{%- endmacro -%}
