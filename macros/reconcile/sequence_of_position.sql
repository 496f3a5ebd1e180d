{%- macro sequence_of_position(position, feed) -%}
    {%- set format = highwater.feed_setting(feed, 'format') -%}
    {%- set order = highwater.feed_setting(feed, 'order', 'change_sequence_number') -%}
    {%- set connector = highwater.feed_setting(feed, 'connector') -%}
    {%- set text = 'trim(' ~ position ~ ')' -%}
    {%- set log_file = "split_part(split_part(" ~ text ~ ", ' ', 1), '.', -1)" -%}
    {%- set second = "split_part(" ~ text ~ ", ' ', 2)" -%}
    {%- if format.startswith('datastream') and order == 'change_sequence_number' -%}
        {%- set sequence = highwater.sortable_sequence([{'text': text, 'base': 'hex', 'at_most': 4}]) -%}
    {%- elif format in ['debezium-json', 'debezium-avro', 'debezium-parquet'] and order == 'kafka' -%}
        {#- offsets of one partition say nothing of the others -#}
        {%- set sequence = 'cast(null as string)' -%}
    {%- elif order == 'mysql_sort_keys' or connector in ['mysql', 'mariadb'] or format == 'arcion-csv' -%}
        {%- set sequence = highwater.sortable_sequence([
            {'text': log_file, 'base': 'decimal'}, {'text': second, 'base': 'decimal'},
        ]) -%}
    {%- elif order == 'postgresql_sort_keys' -%}
        {%- set sequence = highwater.sortable_sequence([{'text': text, 'base': 'hex', 'at_least': 2, 'at_most': 2}]) -%}
    {%- elif order == 'sqlserver_sort_keys' -%}
        {%- set sequence = highwater.sortable_sequence([
            {'text': text, 'base': 'hex', 'separator': ':', 'at_least': 3, 'at_most': 3},
        ]) -%}
    {%- elif connector == 'postgresql' -%}
        {#- the LSN as a number, or as PostgreSQL writes it: its upper and its lower 32 bits in hex -#}
        {%- set sequence -%}
case
    when {{ text }} rlike '^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$'
        then lower(concat(lpad(split_part({{ text }}, '/', 1), 8, '0'), lpad(split_part({{ text }}, '/', 2), 8, '0')))
    else {{ highwater.sortable_sequence([{'text': text, 'base': 'decimal'}]) | indent(4) }}
end
        {%- endset -%}
    {%- elif connector == 'sqlserver' -%}
        {%- set sequence -%}
case
    when {{ text }} rlike '^[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8}:[0-9A-Fa-f]{4}$'
        -- whatever stands behind the LSN of the commit
        then lower(regexp_replace(concat(replace({{ text }}, ':'), 'ffffffffffff'), '^(.{16})', '$1/'))
end
        {%- endset -%}
    {%- elif connector == 'db2' -%}
        {%- set sequence -%}
case
    when {{ text }} rlike '^[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8}:([0-9A-Fa-f]{4}|[0-9A-Fa-f]{16})$'
        -- whatever stands behind the LSN of the commit
        then concat(lower(regexp_replace(lpad(replace({{ text }}, ':'), 32, '0'), '^(.{16})', '$1/')), '/ffffffffffffffff/ffffffffffffffff')
end
        {%- endset -%}
    {%- elif connector == 'informix' -%}
        {%- set sequence = "concat(" ~ highwater.sortable_sequence([{'text': text, 'base': 'decimal'}]) ~ ", '/ffffffffffffffff')" -%}
    {%- elif connector in ['spanner', 'yugabytedb', 'mongodb'] -%}
        {#- nothing that a database of theirs says of an export can be compared with it -#}
        {%- set sequence = 'cast(null as string)' -%}
    {%- elif format.startswith('arcion') -%}
        {%- set sequence -%}
case
    when {{ text }} rlike '^[^ ]*[.][0-9]+ [0-9]+$'
        then {{ highwater.sortable_sequence([
            {'text': log_file, 'base': 'decimal'}, {'text': second, 'base': 'decimal'},
        ]) | indent(8) }}
    else {{ highwater.sortable_sequence([
            {'text': "split_part(" ~ text ~ ", ' ', 1)", 'base': 'decimal'},
            {'text': second, 'base': 'decimal'},
            {'text': "split_part(" ~ text ~ ", ' ', 3)", 'base': 'decimal'},
        ]) | indent(4) }}
end
        {%- endset -%}
    {%- elif format.startswith('dms') -%}
        {%- set sequence = highwater.sortable_sequence([
            {'text': 'substr(' ~ text ~ ', 1, 16)', 'base': 'decimal'},
            {'text': 'substr(' ~ text ~ ', 17)', 'base': 'decimal'},
        ] if highwater.feed_setting(feed, 'sequence_column') else [{'text': "replace(" ~ text ~ ", '-')", 'base': 'decimal'}]) -%}
    {%- elif format == 'changelog' -%}
        {%- set sequence = highwater.sortable_sequence([
            {'text': "split_part(" ~ text ~ ", '/', 1)", 'base': 'decimal'},
            {'text': "split_part(" ~ text ~ ", '/', 2)", 'base': 'decimal'},
        ]) -%}
    {%- else -%}
        {#- one number: Tungsten's seqno, Oracle's SCN -#}
        {%- set sequence = highwater.sortable_sequence([{'text': text, 'base': 'decimal'}]) -%}
    {%- endif -%}
case
    when {{ text }} rlike '^sequence:[0-9a-f]{16}(/[0-9a-f]{16})+$' then substr({{ text }}, 10)
    {%- if not highwater.feed_setting(feed, 'epochs', []) %}
    else concat(
        '0000000000000000/',
        {{ sequence | indent(8) }}
    )
    {%- endif %}
end
{%- endmacro -%}
