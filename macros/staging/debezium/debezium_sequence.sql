{%- macro debezium_sequence(metadata, connector, as_delivered=false) -%}
    {%- set fields = {
        'postgresql': ['lsn', 'sequence'],
        'mysql': ['file', 'pos'],
        'mariadb': ['file', 'pos'],
        'oracle': ['commit_scn', 'scn', 'ssn'],
        'sqlserver': ['commit_lsn', 'change_lsn', 'event_serial_no'],
    } -%}
    {%- if execute and connector not in fields -%}
        {{ exceptions.raise_compiler_error(
            "debezium_sequence: the feed declares the connector '" ~ connector ~ "'; it must be one of: "
            ~ fields.keys() | join(', ') ~ "."
        ) }}
    {%- endif -%}
    {%- set is_read = metadata ~ ".op <=> 'r'" -%}
    {#- what is behind every change of its position -#}
    {%- set last = "'ffffffffffffffff'" -%}
    {%- if as_delivered -%}
concat_ws(', '{% for field in fields.get(connector, []) %}, concat('{{ field }} ', coalesce({{ metadata }}.{{ field }}, 'absent')){% endfor %})
    {%- elif connector == 'postgresql' -%}
        {%- set lsn = highwater.sortable_sequence([{
            'text': "coalesce(" ~ metadata ~ ".lsn, regexp_extract(" ~ metadata ~ ".sequence, '\"([0-9]+)\"\\\\]$', 1))", 'base': 'decimal',
        }]) -%}
        {%- set committed = highwater.sortable_sequence([{
            'text': "regexp_extract(" ~ metadata ~ ".sequence, '^\\\\[\"([0-9]+)\"', 1)", 'base': 'decimal',
        }]) -%}
case
    -- written before, or right behind, what was committed earlier: what was read between the two is older
    when {{ lsn | indent(4) }} <= {{ committed | indent(4) }}
        then concat({{ committed | indent(8) }}, if({{ is_read }}, '', concat('/', {{ lsn | indent(8) }})))
    else {{ lsn | indent(4) }}
end
    {%- elif connector in ('mysql', 'mariadb') -%}
        {#- The number of the binlog file is behind its last dot. `row` is no part of it: it begins anew with each event, and all
            events of a compressed transaction, and of any of MariaDB from 11.4 on, have one position, where the transaction begins.
            The ordinal in the file tells them apart. -#}
        {%- set file = {'text': "split_part(" ~ metadata ~ ".file, '.', -1)", 'base': 'decimal'} -%}
        {%- set pos = metadata ~ '.pos' -%}
case
    -- read before the transaction that begins here
    when {{ is_read }} and try_cast({{ pos }} as bigint) > 0
        then {{ highwater.sortable_sequence([file, {'text': 'string(try_cast(' ~ pos ~ ' as bigint) - 1)', 'base': 'decimal'}]) | indent(8) }}
    else {{ highwater.sortable_sequence([file, {'text': pos, 'base': 'decimal'}]) | indent(4) }}
end
    {%- elif connector == 'oracle' -%}
        {#- a row as of an SCN has all that was committed up to it -#}
        {%- set position = highwater.sortable_sequence([
            {'text': metadata ~ '.commit_scn', 'base': 'decimal', 'is_unsigned': true},
            {'text': metadata ~ '.scn', 'base': 'decimal', 'is_unsigned': true},
            {'text': "coalesce(" ~ metadata ~ ".ssn, '0')", 'base': 'decimal'},
        ]) -%}
        {%- set scn = highwater.sortable_sequence([{'text': metadata ~ '.scn', 'base': 'decimal', 'is_unsigned': true}]) -%}
case
    when {{ is_read }} then concat({{ scn | indent(4) }}, '/', {{ last }}, '/', {{ last }})
    else {{ position | indent(4) }}
end
    {%- else -%}
        {#- two LSNs of 8, 8 and 4 hex digits and a number of at most 8: three sections together -#}
        {%- set lsn = "^[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8}:[0-9A-Fa-f]{4}\\\\z" -%}
case
    when {{ metadata }}.commit_lsn rlike '{{ lsn }}'
        and coalesce({{ metadata }}.change_lsn, if({{ is_read }}, 'ffffffff:ffffffff:ffff', null)) rlike '{{ lsn }}'
        and coalesce({{ metadata }}.event_serial_no, '0') rlike '^[0-9]{1,9}$'
        then lower(regexp_replace(
            concat(
                replace({{ metadata }}.commit_lsn, ':'),
                -- a row as it was read has all that was committed up to its position
                replace(coalesce({{ metadata }}.change_lsn, 'ffffffff:ffffffff:ffff'), ':'),
                lpad(hex(bigint(coalesce({{ metadata }}.event_serial_no, '0'))), 8, '0')
            ),
            '(.{16})(.{16})(.{16})', '$1/$2/$3'
        ))
end
    {%- endif -%}
{%- endmacro -%}
