{%- macro debezium_texts(image, feed, entity) -%}
    {%- set decoded = highwater.debezium_decoded_columns(feed, entity) -%}
    {%- if not decoded -%}
cast({{ image }} as map<string, string>)
    {%- else -%}
transform_values(
    {{ image }},
    (field, value) -> case split_part(declared[field], ' ', 1)
        when 'number' then {{ highwater._debezium_number(feed, decoded) | indent(8) }}
        when 'timestamp' then {{ highwater._debezium_timestamp(feed) | indent(8) }}
        when 'date' then {{ highwater._debezium_date(feed) | indent(8) }}
        when 'binary' then {{ highwater._debezium_bytes(feed) | indent(8) }}
        -- a text stays as it is
        else cast(value as string)
    end
)
    {%- endif -%}
{%- endmacro -%}

{%- macro _debezium_number(feed, decoded) -%}
    {%- set decimals = highwater.feed_setting(feed, 'decimals') -%}
    {%- set source_type = 'upper(types[field].parameters.`__debezium.source.column.type`)' -%}
get(transform(
    array(case
        when schema_of_variant(value) like 'OBJECT%' then struct(
            string(value) as plain, try_variant_get(value, '$.value', 'string') as encoded, try_variant_get(value, '$.scale', 'int') as scale
        )
        -- what went through a double may have lost digits
        when schema_of_variant(value) = 'DOUBLE' and declared[field] <> 'number' and string(value) rlike '[0-9.]{17}'
            then struct(concat('not exact: ', string(value)) as plain, string(null) as encoded, int(null) as scale)
        {%- if decoded | selectattr(2, 'in', ['0 unsigned', '0 maybe unsigned']) | list %}
        -- 64 bits without a sign, written as if the first of them were one
        when declared[field] like '% unsigned' and schema_of_variant(value) = 'BIGINT' and string(value) like '-%' then struct(
            case
                when {{ source_type }} is null and declared[field] like '% maybe %'
                    then concat('negative or above 9223372036854775807, declare the unit unsigned or the type bigint: ', string(value))
                when {{ source_type }} not like '%UNSIGNED%' then string(value)
                else string(try_cast(value as decimal(20, 0)) + 18446744073709551616)
            end as plain,
            string(null) as encoded,
            int(null) as scale
        )
        {%- endif %}
        -- a number of JSON is the number
        when schema_of_variant(value) <> 'STRING' or string(value) in ('NaN', 'Infinity', '-Infinity')
            then struct(string(value) as plain, string(null) as encoded, int(null) as scale)
        -- a decimal that the connector did not have
        when string(value) = base64({{ highwater.sql_text(highwater.unavailable_value(feed)) }})
            then struct(string(value) as plain, string(null) as encoded, int(null) as scale)
        -- the record's schema says what its text is
        when types[field].name = 'org.apache.kafka.connect.data.Decimal'
            then struct(string(value) as plain, string(value) as encoded, int(types[field].parameters.scale) as scale)
        when types[field].type not in ('bytes', 'text or bytes') then struct(string(value) as plain, string(null) as encoded, int(null) as scale)
        {%- if decimals in ('string', 'double') %}
        else struct(string(value) as plain, string(null) as encoded, int(null) as scale)
        {%- else %}
        {#- a setting of decimals says nothing of columns that are none -#}
        {%- set others = "(declared[field] = 'number' or declared[field] like '% integer') and " if decimals == 'precise' else '' %}
        -- Avro's JSON encoding, in which each byte is a character
        when types[field].type = 'text or bytes' and declared[field] = 'number'
            then struct(string(value) as plain, string(null) as encoded, int(null) as scale)
        when types[field].type = 'text or bytes' and {{ others }}string(value) rlike '^[-+]?[0-9]+([.][0-9]+)?$'
            then struct(concat('digits or bytes, declare `decimals`: ', string(value)) as plain, string(null) as encoded, int(null) as scale)
        when types[field].type = 'text or bytes' then struct(
            string(value) as plain, base64(encode(string(value), 'ISO-8859-1')) as encoded, int(split_part(declared[field], ' ', 2)) as scale
        )
        when types[field].type = 'bytes' and declared[field] <> 'number'
            then struct(string(value) as plain, string(value) as encoded, int(split_part(declared[field], ' ', 2)) as scale)
        when {{ others }}not (length(string(value)) % 4 = 0 and string(value) rlike '^[A-Za-z0-9+/]+={0,2}$')
            then struct(string(value) as plain, string(null) as encoded, int(null) as scale)
        when {{ others }}string(value) rlike '^[+]?[0-9]+$'
            then struct(concat('digits or base64, declare `decimals`: ', string(value)) as plain, string(null) as encoded, int(null) as scale)
        when declared[field] = 'number'
            then struct(concat('base64 without its scale, declare a decimal: ', string(value)) as plain, string(null) as encoded, int(null) as scale)
        else struct(string(value) as plain, string(value) as encoded, int(split_part(declared[field], ' ', 2)) as scale)
        {%- endif %}
    end),
    delivered -> case
        when delivered.encoded is null then delivered.plain
        else {{ highwater.decimal_of_bytes(
            "try_to_binary(delivered.encoded, 'base64')", "concat('no number in base64: ', delivered.plain)", 'delivered.scale'
        ) | indent(8) }}
    end
), 0)
{%- endmacro -%}

{%- macro _debezium_timestamp(feed) -%}
case
    when schema_of_variant(value) = 'STRING' then {{ highwater._debezium_time_text(feed, 'timestamp') | indent(4) }}
    else {{ highwater._debezium_moment(feed, "nullif(split_part(declared[field], ' ', 2), '')") | indent(4) }}
end
{%- endmacro -%}

{%- macro _debezium_date(feed) -%}
case
    when schema_of_variant(value) = 'STRING' then {{ highwater._debezium_time_text(feed, 'date') | indent(4) }}
    when coalesce(types[field].name rlike 'Timestamp$', declared[field] <> 'date days')
        then {{ highwater._debezium_moment(feed, "nullif(split_part(declared[field], ' ', 2), '')") | indent(4) }}
    -- beyond the years 1 to 9999 the number stays as it is, and does not fit
    when try_cast(value as bigint) between -719162 and 2932896
        then string(date_add(date '1970-01-01', try_cast(value as int)))
    {%- if highwater.feed_setting(feed, 'infinity') == 'end_of_range' %}
    when string(value) in ('2147483647', '-2147472692', '-622191234') then '9999-12-31'
    when string(value) in ('-2147483648', '-2147472691', '-625821272') then '0001-01-01'
    {%- endif %}
    else string(value)
end
{%- endmacro -%}

{%- macro _debezium_time_text(feed, type) -%}
    {%- set is_date = type == 'date' -%}
case
    {%- if highwater.feed_setting(feed, 'infinity') == 'end_of_range' %}
    when string(value) in ('infinity', '+294247-01-10T04:00:25.2Z', '+292278994-08-16Z')
        then '9999-12-31{{ '' if is_date else ' 23:59:59.999999' }}'
    when string(value) in ('-infinity', '-290308-12-21T19:59:27.6Z', '-5877611-06-21Z')
        then '0001-01-01{{ '' if is_date else ' 00:00:00' }}'
    {%- endif %}
    -- ISO times of columns without a zone end in Z all the same
    {%- if highwater.feed_setting(feed, 'times') == 'isostring' %}
    when coalesce(types[field].name, '') <> 'io.debezium.time.ZonedTimestamp' then regexp_replace(string(value), 'Z$', '')
    {%- else %}
    when types[field].name in ('io.debezium.time.IsoDate', 'io.debezium.time.IsoTimestamp')
        then regexp_replace(string(value), 'Z$', '')
    {%- endif %}
    else string(value)
end
{%- endmacro -%}

{%- macro _debezium_moment(feed, unit) -%}
    {%- set number = 'try_cast(value as bigint)' -%}
get(transform(
    array(case
        -- the record's schema knows the unit, whatever is declared
        when types[field].name in ('io.debezium.time.Timestamp', 'org.apache.kafka.connect.data.Timestamp') then 'millis'
        when types[field].name = 'io.debezium.time.MicroTimestamp' then 'micros'
        when types[field].name = 'io.debezium.time.NanoTimestamp' then 'nanos'
        when types[field].name in ('io.debezium.time.Date', 'org.apache.kafka.connect.data.Date') then 'days'
        else {{ unit }}
    end),
    unit -> case
        when unit is null then concat('a number without a unit, declare millis, micros or nanos: ', string(value))
        {%- if highwater.feed_setting(feed, 'infinity') == 'end_of_range' %}
        when string(value) in ('9223372036825200000', '9223372036825200', '9223372036854775807')
            then '9999-12-31 23:59:59.999999'
        when string(value) in ('-9223372036832400000', '-9223372036832400', '-9223372036854775808')
            then '0001-01-01 00:00:00'
        {%- endif %}
        else get(transform(
            array(case unit
                when 'days' then try_multiply({{ number }}, 86400000000)
                when 'millis' then try_multiply({{ number }}, 1000)
                when 'micros' then {{ number }}
                when 'nanos' then case when {{ number }} % 1000 = 0 then {{ number }} div 1000 end
            end),
            -- beyond the years 1 to 9999 the number stays as it is, and does not fit
            micros -> case
                when micros between -62135596800000000 and 253402300799999999 then string(timestamp_micros(micros))
                else string(value)
            end
        ), 0)
    end
), 0)
{%- endmacro -%}

{%- macro _debezium_bytes(feed) -%}
    {%- set binary = highwater.feed_setting(feed, 'binary') -%}
    {%- set is_hex = "string(value) rlike '^([0-9A-Fa-f]{2})+$'" -%}
    {%- set is_base64url = "string(value) rlike '^[-_0-9A-Za-z]*={0,2}$' and length(string(value)) % 4 = 0" -%}
    {%- set is_base64 = "translate(string(value), '+/', '-_') rlike '^[-_0-9A-Za-z]*={0,2}$' and length(string(value)) % 4 = 0" -%}
case
    when types[field].type = 'bytes' then string(value)
    {%- if binary == 'bytes' %}
    when types[field].type = 'text or bytes' then base64(encode(string(value), 'ISO-8859-1'))
    else string(value)
    {%- elif binary == 'hex' %}
    when string(value) rlike '^([0-9A-Fa-f]{2})*$' then base64(unhex(string(value)))
    else concat('no hex: ', string(value))
    {%- elif binary == 'base64url' %}
    else translate(string(value), '-_', '+/')
    {%- elif binary == 'base64' %}
    else string(value)
    {%- else %}
    -- Avro's JSON encoding, in which each byte is a character
    when types[field].type = 'text or bytes' and string(value) <> '' and ({{ is_hex }} or {{ is_base64 }})
        then concat('bytes, hex or base64, declare `binary`: ', string(value))
    when types[field].type = 'text or bytes' then base64(encode(string(value), 'ISO-8859-1'))
    when {{ is_hex }} and length(string(value)) % 4 = 0 then concat('hex or base64, declare `binary`: ', string(value))
    when {{ is_hex }} then base64(unhex(string(value)))
    when {{ is_base64url }} then translate(string(value), '-_', '+/')
    else string(value)
    {%- endif %}
end
{%- endmacro -%}
