-- noqa: disable=LT05
-- The lines that the macro makes of sort_keys are long.
-- Each row is a pair of sort_keys of one source; a failing row is a pair that sorts the other way or not at all.
with

pairs as (

    {%- for order, lower, higher in [
        ('oracle_sort_keys', ['1700', '9', '0x1.2.3', '0'], ['1699', '10', '0x1.2.3', '0']),
        ('oracle_sort_keys', ['1700', '9', '0xF.2.3', '0'], ['1700', '9', '0x10.2.3', '0']),
        ('oracle_sort_keys', ['1700', '9', '0x1.2.3', '9'], ['1700', '9', '0x1.2.3', '10']),
        ('mysql_sort_keys', ['1700', 'mysql-bin.999999', '4'], ['1699', 'mysql-bin.1000000', '4']),
        ('mysql_sort_keys', ['1700', 'mysql-bin.000009', '999'], ['1700', 'mysql-bin.000009', '1000']),
        ('postgresql_sort_keys', ['1700', '9/FFFFFFFF'], ['1699', '16/0']),
        ('postgresql_sort_keys', ['1700', '16/9'], ['1700', '16/A']),
        ('sqlserver_sort_keys', ['1700', '00000025:00000728:0003'], ['1699', '00000025:00000728:0010']),
        ('sqlserver_sort_keys', ['1700', '9:0:0'], ['1700', 'A:0:0'])
    ] %}
    {%- if not loop.first %}

    union all
    {%- endif %}

    select
        '{{ order }}' as sort_keys_of,
        {{ highwater.datastream_sequence('one', order) | indent(8) }} as lower_sequence,
        {{ highwater.datastream_sequence('two', order) | indent(8) }} as higher_sequence
    from (
        select
            named_struct('sort_keys', array('{{ lower | join("', '") }}')) as one,
            named_struct('sort_keys', array('{{ higher | join("', '") }}')) as two
    )
    {%- endfor %}

)

select * from pairs
where (lower_sequence < higher_sequence) is not true
