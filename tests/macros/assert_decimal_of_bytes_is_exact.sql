-- A failing row is a decimal in bytes that lost a digit, or one beyond 38 digits that was not left as it was.
with

numbers as (

    select
        encoded,
        whole,
        thousandth,
        {{ highwater.decimal_of_bytes('unbase64(encoded)', 'encoded', 0) | indent(8) }} as whole_found,
        {{ highwater.decimal_of_bytes('unbase64(encoded)', 'encoded', 3) | indent(8) }} as thousandth_found
    from
        values
        ('SztMqFqGxHoJiiI//////w==', repeat('9', 38), repeat('9', 35) || '.999'),
        ('tMSzV6V5O4X2dd3AAAAAAQ==', '-' || repeat('9', 38), '-' || repeat('9', 35) || '.999'),
        ('AA==', '0', '0.000'),
        ('/w==', '-1', '-0.001'),
        ('AQ==', '1', '0.001'),
        ('YfM=', '25075', '25.075'),
        ('/4A=', '-128', '-0.128'),
        ('AP8=', '255', '0.255'),
        ('AQA=', '256', '0.256'),
        ('AIAAAAAAAAAA', '9223372036854775808', '9223372036854775.808'),
        ('SztMqFqGxHoJiiJAAAAAAA==', cast(null as string), cast(null as string)),
        ('AQEBAQEBAQEBAQEBAQEBAQE=', cast(null as string), cast(null as string))
            as texts (encoded, whole, thousandth)

)

select * from numbers
where
    whole_found is distinct from coalesce(whole, encoded)
    or thousandth_found is distinct from coalesce(thousandth, encoded)
