{%- macro changes_to_take_in(log, entity, publications=none) -%}
    {%- set published = (highwater.published_log_batch(publications, entity) or 0) if execute and publications else none -%}
    {%- set due = {} -%}
    {%- if execute and (publications or not is_incremental()) -%}
        {#- what the log has is not what this base takes in -#}
        {%- do highwater.facts_of_table(entity).clear() -%}
    {%- endif -%}
    {%- if execute and is_incremental() -%}
        {%- do due.update(highwater.due_compaction(this, log, entity, published)) -%}
        {%- do highwater.handed_on().update({'due': due, 'is_empty': not due.cause}) -%}
        {%- if not due.cause -%}
            {%- set nothing = ', cast(null as array<string>) as present_columns' if highwater.entity_setting(entity, 'partial_images', false) else '' -%}
            {{ return('    -- no compaction is due\n    select *' ~ nothing ~ ' from ' ~ this ~ '\n    where false') }}
        {%- endif -%}
    {%- elif execute and published is none -%}
        {%- do highwater.say_what_is_pending(entity, 0) -%}
    {%- endif -%}
    {{ highwater.applied_since(log, entity, due.applied_batch | default(0), published) }}
{%- endmacro -%}
