{%- macro logged_tables() -%}
    {#- Written by `highwater add-table`: every change log, with the sources that feed it. -#}
    {{ return([
        {'entity': 'customers', 'sources': [['datastream_user1', 'customers']]},
        {'entity': 'table1', 'sources': [['datastream_user1', 'table1']]},
    ]) }}
{%- endmacro -%}
