-- Each row is a pair whose first value is lower than its second; a failing row is a pair that sorts the other way.
with

pairs as (

    select
        {{
            highwater.sortable_sequence([{'text': 'lower_text', 'base': 'hex', 'at_most': 3}]) | indent(8)
        }} as lower_hex,
        {{
            highwater.sortable_sequence([{'text': 'higher_text', 'base': 'hex', 'at_most': 3}]) | indent(8)
        }} as higher_hex,
        lower_text,
        higher_text
    from
        values
        ('9', '10'),
        ('f/0', '10/0'),
        ('0/a', '0/B'),
        ('1/ffff', '1/10000'),
        ('2', '2/0/1')
            as pairs (lower_text, higher_text)

),

decimals as (

    select
        {{ highwater.sortable_sequence([{'text': 'lower_text', 'base': 'decimal'}]) | indent(8) }} as lower_hex,
        {{ highwater.sortable_sequence([{'text': 'higher_text', 'base': 'decimal'}]) | indent(8) }} as higher_hex,
        lower_text,
        higher_text
    from
        values
        ('9', '10'),
        ('0099', '100'),
        ('9223372036854775806', '9223372036854775807')
            as pairs (lower_text, higher_text)

),

unsigned_decimals as (

    select
        {{ highwater.sortable_sequence([
            {'text': 'lower_text', 'base': 'decimal', 'is_unsigned': true}
        ]) | indent(8) }} as lower_hex,
        {{ highwater.sortable_sequence([
            {'text': 'higher_text', 'base': 'decimal', 'is_unsigned': true}
        ]) | indent(8) }} as higher_hex,
        lower_text,
        higher_text
    from
        values
        ('9', '10'),
        ('9223372036854775807', '9223372036854775808'),
        ('0099', '100'),
        ('18446744073709551614', '18446744073709551615')
            as pairs (lower_text, higher_text)

)

select * from pairs
where (lower_hex < higher_hex) is not true

union all

select * from decimals
where (lower_hex < higher_hex) is not true

union all

select * from unsigned_decimals
where (lower_hex < higher_hex) is not true
