{%- macro is_timed_change(feed, change='') -%}
    {#- Debezium's rows as they were read have no ordinal behind their position, and truncates have none either. -#}
    {%- set lengths = {
        'postgresql': 33, 'yugabytedb': 33, 'mysql': 50, 'mariadb': 50, 'informix': 50, 'kafka': 50,
        'oracle': 67, 'sqlserver': 67, 'db2': 84,
    } -%}
    {%- set connector = 'kafka' if highwater.feed_setting(feed, 'order') == 'kafka' else highwater.feed_setting(feed, 'connector') -%}
    {%- set digits = lengths.get(connector) -%}
    {%- set sequence = change ~ 'change_sequence_number' -%}
{{ change }}changed_at is not null and not {{ highwater.is_baseline_sequence(sequence) }}
    {%- if digits %} and (length({{ sequence }}) > {{ digits }} or {{ change }}change_type = 'truncate'){% endif -%}
{%- endmacro -%}
