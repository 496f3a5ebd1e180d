{%- macro known_fields(feed, entity, shard_field=none) -%}
    {%- set fields = highwater.names_in_records(highwater.entity_columns(entity)) | reject('eq', shard_field) | list -%}
    {%- set known = fields + ['Op', 'op', highwater.feed_setting(feed, 'sequence_column'), highwater.feed_setting(feed, 'timestamp_column')] -%}
    {%- set usual = ['opcode', 'seqno', 'row_id', 'commit_timestamp', 'optype', 'cursor', 'operationcounts'] -%}
    {%- do known.extend(highwater.feed_setting(feed, 'columns', usual)) -%}
    {%- for field in fields -%}
        {%- do known.extend([
            highwater.feed_setting(feed, 'before_prefix', 'BI_') ~ field, field ~ '_NEW', field ~ '_OLD', field ~ '_EXISTS',
        ]) -%}
    {%- endfor -%}
    {{- highwater.quoted_texts(known | select | list) -}}
{%- endmacro -%}
