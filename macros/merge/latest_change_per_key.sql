{%- macro latest_change_per_key(changes, entity, current=none) -%}
    {%- if execute and not highwater.entity_key(entity) -%}
        {{ exceptions.raise_compiler_error(
            entity ~ " has no key, so it has a log and no merged table: two records that are alike may be two rows or one. "
            ~ "Declare its key in the YAML of " ~ entity ~ "_changes, or remove the model " ~ entity ~ "_merged."
        ) }}
    {%- endif -%}
    {%- if highwater.entity_setting(entity, 'partial_images', false) -%}
        {{- highwater.folded_changes(changes, entity, current) -}}
    {%- else -%}
    select `latest row`.*
    from (
        select max_by(struct({{ changes }}.*), {{ highwater.total_order(changes) }}) as `latest row`
        from {{ changes }}
        group by `{{ highwater.entity_key(entity) | join('`, `') }}`
    )
    {%- endif -%}
{%- endmacro -%}
