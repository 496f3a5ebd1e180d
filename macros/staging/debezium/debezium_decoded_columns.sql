{%- macro debezium_decoded_columns(feed, entity) -%}
    {#- The columns whose values are not read as they stand: what they are and, where their records do not say it, the scale or unit. -#}
    {%- set units = {'connect': 'millis', 'microseconds': 'micros', 'nanoseconds': 'nanos'} -%}
    {%- set unit_of_feed = units.get(highwater.feed_setting(feed, 'times')) -%}
    {%- set decoded = [] -%}
    {%- for column in highwater.entity_columns(entity) -%}
        {%- for field in [column.field] + column.former_fields -%}
            {%- set type = column.data_type -%}
            {%- if column.unit and column.unit not in (['unsigned'] if type == 'decimal(20,0)' else ['millis', 'micros', 'nanos']) -%}
                {{ exceptions.raise_compiler_error(
                    "the column " ~ column.name ~ " declares the unit '" ~ column.unit ~ "'; it must be millis, micros or nanos, or unsigned "
                    ~ "of a decimal(20,0)."
                ) }}
            {%- elif type == 'decimal(20,0)' and (column.unit or highwater.feed_setting(feed, 'connector') in ('mysql', 'mariadb')) -%}
                {#- an unsigned bigint, or what may be one -#}
                {%- do decoded.append([field, 'number', '0 ' ~ (column.unit or 'maybe unsigned')]) -%}
            {%- elif type.startswith('decimal') -%}
                {%- do decoded.append([field, 'number', highwater.decimal_digits(type)[1]]) -%}
            {%- elif type in ('tinyint', 'smallint', 'int', 'bigint') -%}
                {%- do decoded.append([field, 'number', '0 integer']) -%}
            {%- elif type in ('float', 'double') -%}
                {%- do decoded.append([field, 'number', none]) -%}
            {%- elif type in ('timestamp', 'timestamp_ntz') -%}
                {%- do decoded.append([field, 'timestamp', column.unit or unit_of_feed]) -%}
            {%- elif type == 'date' -%}
                {%- do decoded.append([field, 'date', column.unit or 'days']) -%}
            {%- elif type == 'binary' -%}
                {%- do decoded.append([field, 'binary', none]) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(decoded) }}
{%- endmacro -%}
