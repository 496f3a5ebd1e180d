{%- macro answer_with_facts(relation, node) -%}
    {#- The response of a log and of a base: what is known of the table once they are written. -#}
    {%- set is_base = 'merged' in node.config.get('meta', {}) and node.name.endswith('_merged') -%}
    {%- set is_log = node.fqn[1] == 'changes' and node.name.endswith('_changes') -%}
    {%- if not is_base and not is_log -%}
        {{ return('') }}
    {%- endif -%}
    {%- set entity = node.name.removesuffix('_merged').removesuffix('_changes') -%}
    {%- set facts = highwater.facts_of_table(entity) -%}
    {%- if facts and is_log -%}
        {%- do facts.update(facts.pop('arrived')) -%}
    {%- elif facts and facts.get('due') is not none -%}
        {%- do facts.update({'merged_since': facts.applied, 'applied': facts.log_batch, 'rows': facts.rows + facts.due, 'held': none}) -%}
        {%- do highwater.base_as_known(relation, facts, node.config.meta.merged.compact_when) -%}
    {%- endif -%}
    {%- set message = load_result('main').response | string -%}
    {%- do store_raw_result('main', message=message, code=tojson({'entity': entity, 'facts': facts, 'met': highwater.handed_on().get('met', {})}), rows_affected=none) -%}
{%- endmacro -%}
