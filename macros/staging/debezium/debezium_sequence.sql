{%- macro debezium_sequence(metadata, feed, as_delivered=false) -%}
    {%- set connector = highwater.feed_setting(feed, 'connector') if highwater.feed_setting(feed, 'order') != 'kafka' else 'kafka' -%}
    {%- set fields = highwater.debezium_position_fields(feed) -%}
    {%- set is_read = metadata ~ ".op <=> 'r'" -%}
    {#- what is behind every change of its position -#}
    {%- set last = "'ffffffffffffffff'" -%}
    {%- if as_delivered and connector == 'kafka' -%}
case
    when {{ metadata }}.op <=> 't' then 'absent, for a truncate has no order among the partitions of Kafka'
    else 'absent, for neither the name of the file (<topic>+<partition>+<offset>) nor a field offset beside the record tells the order of Kafka'
end
    {%- elif as_delivered -%}
concat_ws(', '{% for field in fields %}, concat('{{ field }} ', coalesce({{ metadata }}.{{ field }}, 'absent')){% endfor %})
    {%- elif connector == 'kafka' -%}
{{ highwater.kafka_offset(feed, metadata ~ ".op <=> 't'") }}
    {%- elif connector == 'postgresql' or connector == 'yugabytedb' -%}
        {%- set lsn = highwater.sortable_sequence([{
            'text': "coalesce(" ~ metadata ~ ".lsn, regexp_extract(" ~ metadata ~ ".sequence, '\"([0-9]+)\"\\\\]$', 1))", 'base': 'decimal',
        }]) -%}
        {%- set committed = highwater.sortable_sequence([{
            'text': "regexp_extract(" ~ metadata ~ ".sequence, '^\\\\[\"([0-9]+)\"', 1)", 'base': 'decimal',
        }]) -%}
case
    {%- if connector == 'yugabytedb' %}
    -- a position of the tablets, which split: the clock of the whole cluster tells the order
    when {{ metadata }}.lsn like '%:%'
        then {{ highwater.sortable_sequence([
            {'text': metadata ~ '.commit_time', 'base': 'decimal'}, {'text': metadata ~ '.record_time', 'base': 'decimal'},
        ]) | indent(8) }}
    {%- endif %}
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
    {%- elif connector == 'db2' -%}
        {#- two LSNs of 8, 8 and 4 or 16 hex digits: four sections together -#}
        {%- set lsn = "^[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8}:([0-9A-Fa-f]{4}|[0-9A-Fa-f]{16})\\\\z" -%}
        {%- set behind = "'ffffffff:ffffffff:ffffffffffffffff'" -%}
case
    when {{ metadata }}.commit_lsn rlike '{{ lsn }}'
        and coalesce({{ metadata }}.change_lsn, if({{ is_read }}, {{ behind }}, null)) rlike '{{ lsn }}'
        then lower(regexp_replace(
            concat(
                lpad(replace({{ metadata }}.commit_lsn, ':'), 32, '0'),
                -- a row as it was read has all that was committed up to its position
                lpad(replace(if({{ is_read }}, {{ behind }}, {{ metadata }}.change_lsn), ':'), 32, '0')
            ),
            '(.{16})(.{16})(.{16})(.{16})', '$1/$2/$3/$4'
        ))
end
    {%- elif connector == 'informix' -%}
        {%- set commit = highwater.sortable_sequence([{'text': metadata ~ '.commit_lsn', 'base': 'decimal'}]) -%}
        {%- set change = highwater.sortable_sequence([{'text': metadata ~ '.change_lsn', 'base': 'decimal'}]) -%}
concat(
    {{ commit | indent(4) }},
    '/',
    -- a row as it was read has all that was committed up to its position
    case when {{ is_read }} then {{ last }} else {{ change | indent(4) }} end
)
    {%- elif connector in ('spanner', 'mongodb') -%}
        {%- set sections = [] -%}
        {%- for field in fields -%}
            {%- do sections.append({'text': metadata ~ '.' ~ field, 'base': 'decimal'}) -%}
        {%- endfor -%}
{{ highwater.sortable_sequence(sections) }}
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
