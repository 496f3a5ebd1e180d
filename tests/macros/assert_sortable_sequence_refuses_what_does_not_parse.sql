-- A failing row is a text that was given an order although it has none.
select
    text,
    {{ sortable_sequence([{'text': 'text', 'base': 'hex', 'at_most': 2}]) }} as hex_sequence,
    {{ sortable_sequence([{'text': 'text', 'base': 'decimal'}]) }} as decimal_sequence
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
where
    {{ sortable_sequence([{'text': 'text', 'base': 'hex', 'at_most': 2}]) }} is not null
    or {{ sortable_sequence([{'text': 'text', 'base': 'decimal'}]) }} is not null
