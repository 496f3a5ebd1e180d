-- A failing row is a text that was given an order although it has none.
with

texts as (

    select
        text,
        {{ highwater.sortable_sequence([{'text': 'text', 'base': 'hex', 'at_most': 2}]) | indent(8) }} as hex_sequence,
        {{ highwater.sortable_sequence([{'text': 'text', 'base': 'decimal'}]) | indent(8) }} as decimal_sequence
    from
        values
        (''),
        (' 1'),
        ('-1'),
        ('1.5'),
        ('g'),
        ('1/'),
        ('/1'),
        ('1/2/3'),
        ('123456789012345678901'),
        (cast(null as string))
            as texts (text)

)

select * from texts
where hex_sequence is not null or decimal_sequence is not null
