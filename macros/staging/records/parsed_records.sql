{%- macro parsed_records(rows, feed, entity, own, has_text=false) -%}
    {%- set columns = dict(
        {'is_baseline': 'is_baseline', 'is_snapshot': 'is_baseline', 'source_identity': 'cast(null as string)'}, **own
    ) -%}
    {%- do columns.update({'change_sequence_number': highwater.sequence_in_epoch(feed, own.change_sequence_number)}) -%}
    select
        source_file,
        source_line,
        landing_batch,
        landed_at,
        record,
        {{- highwater._shard_of_record(entity) }}
        case
            when problem is not null then problem
            {%- if has_text %}
            {{- highwater._unreadable_text() | indent(12) }}
            {%- endif %}
            {{- own.problem | indent(12) }}
        end as problem,
        {%- for name in [
            'image', 'withheld', 'old_image', 'operation', 'change_type', 'sequence', 'change_sequence_number',
            'commit_time', 'changed_at', 'is_baseline', 'is_snapshot', 'gtid', 'source_identity', 'index',
        ] if columns.get(name) %}
        {{ columns[name] | indent(8) }}{{ ' as ' ~ name if columns[name] not in (name, 'metadata.' ~ name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ rows }}
{%- endmacro -%}

{%- macro _unreadable_text() %}
when text is null and not is_valid_utf8(delivered_text)
    then concat('not_utf8: character ', instr(make_valid_utf8(delivered_text), '�'), ' is no UTF-8')
when text is null
    then concat('not_utf8: half of a surrogate pair, ', regexp_extract(delivered_text, '\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}', 0))
{%- endmacro -%}

{%- macro _shard_of_record(entity) -%}
    {%- set source = highwater.source_of_model(entity) -%}
    {%- if highwater.shard_column(source.feed, source.table, entity) and highwater.feed_setting(source.feed, 'layout') == 'records' %}
        fields['shard'] as shard,
    {%- endif -%}
{%- endmacro -%}
