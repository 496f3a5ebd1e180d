{%- macro declared_records(records, feed, entity) -%}
    {%- set change = highwater.change_of_feed(feed) -%}
    {%- set condition = {} -%}
    {%- for word in ['delete_when', 'truncate_when', 'ignore_when', 'snapshot_when'] if change.get(word) -%}
        {%- do condition.update({word: highwater.value_of_record(change[word], feed)}) -%}
    {%- endfor -%}
    {%- set baseline = highwater.baseline_condition(feed, condition.get('snapshot_when', 'false')) -%}
    {%- set sections = [] -%}
    {%- for section in change.order if section is mapping -%}
        {%- set kind = section.keys() | reject('in', ['sections', 'separator', 'width', 'unit']) | first -%}
        {%- do sections.append(highwater.value_of_record(section[kind], feed)) -%}
    {%- endfor -%}
    {%- set texts = highwater.sections_of_order(change.order, feed) | map(attribute='text') | list -%}
    {%- set change_type -%}
case
    {%- if 'truncate_when' in condition %}
    when {{ condition.truncate_when }} then 'truncate'
    {%- endif %}
    {%- if 'delete_when' in condition %}
    when {{ condition.delete_when }} then 'delete'
    {%- endif %}
    {%- for word in ['insert', 'update', 'delete', 'truncate'] if change.get(word) %}
    when metadata.operation in ({{ highwater.quoted_texts(change[word]) }}) then '{{ word }}'
    {%- endfor %}
    {%- if not change.get('operation') %}
    -- a row as it is now
    else 'update'
    {%- endif %}
end
    {%- endset -%}
    {%- set problem %}
when document is null then 'malformed_record: it is no whole JSON object'
    {%- if 'ignore_when' in condition %}
when {{ condition.ignore_when }} then 'ignored: `ignore_when` of the feed holds'
    {%- endif %}
    {%- if change.get('ignore') %}
when metadata.operation in ({{ highwater.quoted_texts(change.ignore) }}) then 'ignored: the feed says `ignore` of this operation'
    {%- endif %}
{{- highwater.unknown_source(feed) }}
    {%- if change.get('row') or change.get('before') %}
when image is null and change_type <> 'truncate' then 'malformed_record: it has no row where the feed says that there is one'
    {%- endif %}
    {%- endset -%}
    {%- set key = highwater.key_columns(entity) -%}
    {%- set position -%}
case when is_baseline then {{ highwater.lowest_sequence() }} else {{ highwater.order_of_record(change.order, feed) }} end
    {%- endset -%}
    {%- set key_fields = 'array(' ~ highwater.quoted_texts(key | map(attribute='field')) ~ ')' -%}
    {%- set old_image -%}
-- what it does not carry of the key has not changed
map_from_arrays(
    {{ key_fields }},
    transform({{ key_fields }}, field -> if(map_contains_key(before, field), before[field], image[field]))
)
    {%- endset -%}
    {%- set nulls = change.get('ignore_null_updates') -%}
    {%- set image -%}
        {%- if nulls -%}
-- a value that is NULL has not changed
map_filter(image, (field, value) -> value is not null{% if nulls is not sameas true %} or field not in ({{ highwater.quoted_texts(nulls) }}){% endif %})
        {%- else -%}
image
        {%- endif -%}
    {%- endset -%}
    {%- set rows -%}
    (
        select
            * except (row),
            {%- if change.get('before') %}
            coalesce(row, before) as image,
            {%- else %}
            row as image,
            {%- endif %}
            {{ change_type | indent(12) }} as change_type,
            coalesce({{ baseline }}, false) as is_baseline
        from (
            select
                *,
                struct(
                    {{ highwater.value_of_record(change.operation, feed) if change.get('operation') else 'cast(null as string)' }} as operation,
                    {{ highwater.value_of_record(change.time.timestamp, feed) if change.get('time') else 'cast(null as string)' }} as commit_time,
                    {{ highwater.moment_of_record(highwater.value_of_record(change.time.timestamp, feed), change.time.get('unit')) if change.get('time') else 'cast(null as timestamp)' }} as changed_at
                ) as metadata,
                array({{ texts | join(',\n') | indent(20) }}) as order_texts,
                {{ "concat_ws(', ', " ~ sections | join(', ') ~ ')' if sections else 'cast(null as string)' }} as sequence,
                {{ highwater.value_of_record(change.source, feed) if change.get('source') else 'cast(null as string)' }} as source_identity,
                {{ highwater.row_of_record(change.get('row'), feed) | indent(16) }} as row
                {%- if change.get('before') %},
                {{ highwater.row_of_record(change.before, feed) | indent(16) }} as before
                {%- endif %}
            from (
                {{- highwater.json_records(records, 'map<string, variant>') | indent(12) }}
            )
        )
    )
    {%- endset -%}
    {{- highwater.parsed_records(rows, feed, entity, {
        'problem': problem,
        'image': image,
        'old_image': old_image if change.get('before') and key else none,
        'operation': 'metadata.operation',
        'change_type': 'change_type',
        'sequence': 'sequence',
        'change_sequence_number': position,
        'commit_time': 'metadata.commit_time',
        'changed_at': 'metadata.changed_at',
        'source_identity': 'source_identity',
        'index': "coalesce(int(fields['index']), 0)" if change.order[-1] == 'place' else none,
    }, has_text=true) -}}
{%- endmacro -%}
