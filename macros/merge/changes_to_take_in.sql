{%- macro changes_to_take_in(log, entity, publications=none) -%}
    {%- set published = (highwater.published_log_batch(publications, entity) or 0) if execute and publications else none -%}
    {%- set due = {} -%}
    {%- set facts = highwater.facts_of_table(entity) if execute else {} -%}
    {%- if publications or not is_incremental() and facts.since != 0 -%}
        {#- what the log has is not what this base takes in -#}
        {%- do facts.clear() -%}
    {%- endif -%}
    {%- if execute and is_incremental() -%}
        {%- do due.update(highwater.due_compaction(this, log, entity, published)) -%}
        {%- do highwater.handed_on().update({'due': due, 'is_empty': not due.cause}) -%}
        {%- if not due.cause -%}
            {%- set nothing = ', cast(null as array<string>) as present_columns' if highwater.entity_setting(entity, 'partial_images', false) else '' -%}
            {{ return('    -- no compaction is due\n    select *' ~ nothing ~ ' from ' ~ this ~ '\n    where false') }}
        {%- endif -%}
    {%- elif execute and published is none -%}
        {%- do highwater.add_to_answer('pending', 0) -%}
        {%- do facts.update({'due': facts.arrived_rows} if facts else {}) -%}
    {%- endif -%}
    {{ highwater.applied_since(log, entity, due.applied_batch | default(0), published) }}
{%- endmacro -%}
