-- Positions as administrators write them, and the beginning of the sequence that changes there have.
{%- set cases = [
    ('datastream_user1', '13E20/19/B2E8', '0000000000013e20/0000000000000019/000000000000b2e8/0000000000000000'),
    ('datastream_user1', 'log-bin.000012 4711', none),
    ('datastream_user1', 'sequence:0000000000000001/0000000000013e20', 'as it is'),
    ('datastream_user1', 'sequence:13e20', none),
    ('datastream_crm', 'mysql-bin.1000000 8506', '00000000000f4240/000000000000213a'),
    ('datastream_hr', '17/3718', '0000000000000017/0000000000003718'),
    ('datastream_hr', '17', none),
    ('debezium_erp', '97895069432', '00000016cb0036f8'),
    ('debezium_erp', '16/CB0036F8', '00000016cb0036f8'),
    ('debezium_erp', '16/CB0036F8 ', '00000016cb0036f8'),
    ('arcion_files', 'log-bin.1000000 6511', '00000000000f4240/000000000000196f'),
    ('arcion_tpch', 'log-bin.1000000 15187', '00000000000f4240/0000000000003b53'),
    ('arcion_tpch', '1620788014628 1620787053905 1504', '000001795e7e6e24/000001795e6fc551/00000000000005e0'),
    ('arcion_tpch', '1620787053905 1504', none),
    ('dms_sales', '20260302091646000000000000000000043', '000732a9eaebe538/000000000000002b'),
    ('tungsten_shop', '3000000004', '00000000b2d05e04'),
    ('tungsten_shop', 'three', none),
] -%}
{%- set feeds = graph.sources.values() | map(attribute='source_name') | list if execute else [] -%}
{%- for feed, position, sequence in cases if feed in feeds %}
{%- set expected = position.removeprefix('sequence:') if sequence == 'as it is'
    else '0000000000000000/' ~ sequence if sequence is not none %}
select
    '{{ feed }}' as feed,
    position,
    expected,
    {{ highwater.sequence_of_position('position', feed) | indent(4) }} as found
from (
    select
        '{{ position }}' as position,
        {{ "'" ~ expected ~ "'" if expected else 'cast(null as string)' }} as expected
)
where not expected <=> {{ highwater.sequence_of_position('position', feed) | indent(4) }}
{{ 'union all' if not loop.last }}
{%- endfor %}
