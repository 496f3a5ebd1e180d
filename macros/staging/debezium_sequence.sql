{%- macro debezium_sequence(metadata, connector, as_delivered=false) -%}
    {%- set fields = {
        'postgresql': ['lsn'],
        'mysql': ['file', 'pos', 'row'],
        'mariadb': ['file', 'pos', 'row'],
        'oracle': ['commit_scn', 'scn', 'ssn'],
        'sqlserver': ['commit_lsn', 'change_lsn', 'event_serial_no'],
    } -%}
    {%- if execute and connector not in fields -%}
        {{ exceptions.raise_compiler_error(
            "debezium_sequence: the feed declares the connector '" ~ connector ~ "'; it must be one of: "
            ~ fields.keys() | join(', ') ~ "."
        ) }}
    {%- endif -%}
    {%- if as_delivered -%}
concat_ws(' '{% for field in fields.get(connector, []) %}, {{ metadata }}.{{ field }}{% endfor %})
    {%- elif connector == 'postgresql' -%}
        {{- sortable_sequence([{'text': metadata ~ '.lsn', 'base': 'decimal'}]) -}}
    {%- elif connector in ('mysql', 'mariadb') -%}
        {#- the number of the binlog file is behind its last dot; row counts within one event -#}
        {{- sortable_sequence([
            {'text': "split_part(" ~ metadata ~ ".file, '.', -1)", 'base': 'decimal'},
            {'text': metadata ~ '.pos', 'base': 'decimal'},
            {'text': "coalesce(" ~ metadata ~ ".row, '0')", 'base': 'decimal'},
        ]) -}}
    {%- elif connector == 'oracle' -%}
        {{- sortable_sequence([
            {'text': metadata ~ '.commit_scn', 'base': 'decimal'},
            {'text': metadata ~ '.scn', 'base': 'decimal'},
            {'text': "coalesce(" ~ metadata ~ ".ssn, '0')", 'base': 'decimal'},
        ]) -}}
    {%- else -%}
        {#- two LSNs of 8, 8 and 4 hex digits and a number of at most 8: three sections together -#}
        {%- set digits -%}
concat(
    replace({{ metadata }}.commit_lsn, ':'),
    replace({{ metadata }}.change_lsn, ':'),
    lpad(hex(try_cast(coalesce({{ metadata }}.event_serial_no, '0') as bigint)), 8, '0')
)
        {%- endset -%}
        {%- set lsn = "^[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8}:[0-9A-Fa-f]{4}\\\\z" -%}
case
    when {{ metadata }}.commit_lsn rlike '{{ lsn }}'
        and {{ metadata }}.change_lsn rlike '{{ lsn }}'
        and coalesce({{ metadata }}.event_serial_no, '0') rlike '^[0-9]{1,9}$'
        then lower(regexp_replace({{ digits | indent(8) }}, '(.{16})(.{16})(.{16})', '$1/$2/$3'))
end
    {%- endif -%}
{%- endmacro -%}
