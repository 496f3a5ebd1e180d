{%- macro declared_changes(records, entity) -%}
    {%- set source = highwater.source_of_model(entity) -%}
    {%- set change = highwater.change_of_feed(source.feed) -%}
    {%- set parsed = highwater.declared_records('records', source.feed, entity) -%}
    {{ highwater.staged_changes(
        records, source, entity, parsed,
        binary_encoding=change.get('binary', 'base64'),
        has_present=change.get('partial') or change.get('ignore_null_updates'), has_old_key='before' in change, has_place=change.order[-1] == 'place',
        has_index=true
    ) }}
{%- endmacro -%}
