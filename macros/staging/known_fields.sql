{%- macro known_fields(feed, entity) -%}
    {%- set fields = entity_columns(entity) | map(attribute='field') | list -%}
    {%- set known = fields + ['Op', 'op', feed_setting(feed, 'sequence_column'), feed_setting(feed, 'timestamp_column')] -%}
    {%- set usual = ['opcode', 'seqno', 'row_id', 'commit_timestamp', 'optype', 'cursor', 'operationcounts'] -%}
    {%- do known.extend(feed_setting(feed, 'columns', usual)) -%}
    {%- for field in fields -%}
        {%- do known.extend([
            feed_setting(feed, 'before_prefix', 'BI_') ~ field, field ~ '_NEW', field ~ '_OLD', field ~ '_EXISTS',
        ]) -%}
    {%- endfor -%}
    {{- _quoted(known | select | list) -}}
{%- endmacro -%}
