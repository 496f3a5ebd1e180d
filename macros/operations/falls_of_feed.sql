{%- macro falls_of_feed(feed, entities) -%}
    {%- for entity in entities if highwater.may_fall(entity, feed) -%}
        {%- set staged = highwater.built_relation('stg_' ~ feed ~ '__' ~ entity ~ '_changes') -%}
        {#- all that has landed, as if nothing were in the log -#}
        {%- set source = {
            'relation': staged, 'feed': feed, 'watermark': 0, 'batches': [],
            'table': graph.nodes['model.' ~ project_name ~ '.' ~ staged.identifier].sources | map(attribute=1) | first,
        } -%}
        {%- set fall = highwater.falling_positions({'entity': entity, 'staged': [source], 'current': [], 'ends': []}, source, says=false) -%}
        {%- if fall -%}
            {%- do highwater.hand_over('falls', fall) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro -%}
