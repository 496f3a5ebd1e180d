{%- macro datastream_sequence(metadata, order) -%}
    {%- set keys = metadata ~ '.sort_keys' -%}
    {%- set second = 'get(' ~ keys ~ ', 1)' -%}
    {%- set third = 'get(' ~ keys ~ ', 2)' -%}
    {%- set fourth = 'get(' ~ keys ~ ', 3)' -%}
    {%- if order == 'change_sequence_number' -%}
        {%- set parts = [{
            'text': metadata ~ '.change_sequence_number', 'base': 'hex', 'at_most': 4,
        }] -%}
    {%- elif order == 'oracle_sort_keys' -%}
        {#- milliseconds, SCN, rs_id (three hex sections; empty: not known, and the lowest), ssn -#}
        {%- set parts = [
            {'text': second, 'base': 'decimal', 'is_unsigned': true},
            {'text': "coalesce(nullif(replace(trim(" ~ third ~ "), '0x'), ''), if(" ~ third ~ " is not null, '0.0.0', null))",
             'base': 'hex', 'separator': '.', 'at_least': 3, 'at_most': 3},
            {'text': fourth, 'base': 'decimal'},
        ] -%}
    {%- elif order == 'mysql_sort_keys' -%}
        {#- milliseconds, binlog file, position; the number of the file is behind its last dot -#}
        {%- set parts = [
            {'text': "split_part(" ~ second ~ ", '.', -1)", 'base': 'decimal'},
            {'text': third, 'base': 'decimal'},
        ] -%}
    {%- elif order == 'postgresql_sort_keys' -%}
        {#- milliseconds, LSN (two hex sections) -#}
        {%- set parts = [{'text': second, 'base': 'hex', 'at_least': 2, 'at_most': 2}] -%}
    {%- elif order == 'sqlserver_sort_keys' -%}
        {#- milliseconds, LSN (three hex sections) -#}
        {%- set parts = [
            {'text': second, 'base': 'hex', 'separator': ':', 'at_least': 3, 'at_most': 3},
        ] -%}
    {%- elif not execute -%}
        {#- what the feed declares is not known yet -#}
        {%- set parts = [] -%}
    {%- else -%}
        {{ exceptions.raise_compiler_error(
            "datastream_sequence: the feed declares the order '" ~ order ~ "'; it must be one of: "
            ~ "change_sequence_number, oracle_sort_keys, mysql_sort_keys, postgresql_sort_keys, "
            ~ "sqlserver_sort_keys."
        ) }}
    {%- endif -%}
    {{- highwater.sortable_sequence(parts) -}}
{%- endmacro -%}
