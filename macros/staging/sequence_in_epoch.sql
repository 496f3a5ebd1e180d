{%- macro sequence_in_epoch(feed, sequence) -%}
    {%- set epochs = feed_setting(feed, 'epochs', []) -%}
    {%- if not epochs -%}
concat('0000000000000000/', {{ sequence }})
    {%- else -%}
concat(
    case
        -- the last one that fits
        {%- for epoch in epochs | reverse %}
        when {{ _belongs_to_epoch(feed, epoch) }} then '{{ '%016x' % (epochs | length - loop.index0) }}/'
        {%- endfor %}
        else '0000000000000000/'
    end,
    {{ sequence | indent(4) }}
)
    {%- endif -%}
{%- endmacro -%}

{%- macro _belongs_to_epoch(feed, epoch) -%}
    {%- set unknown = epoch.keys() | reject('in', ['source', 'when', 'resync']) | list if epoch is mapping else ['?'] -%}
    {%- if unknown or not (epoch.get('source') or epoch.get('when')) -%}
        {{ exceptions.raise_compiler_error(
            "an epoch of the feed " ~ feed ~ " is declared as " ~ epoch ~ "; it must say `source:` (the identity of "
            ~ "the source) or `when:` (a condition in SQL over source_file and metadata), and may say `resync: true`."
        ) }}
    {%- endif -%}
    {%- set conditions = [] -%}
    {%- if epoch.get('source') -%}
        {%- do conditions.append("source_identity = '" ~ epoch.source ~ "'") -%}
    {%- endif -%}
    {%- if epoch.get('when') -%}
        {%- do conditions.append('(' ~ epoch.when ~ ')') -%}
    {%- endif -%}
    {{- conditions | join(' and ') -}}
{%- endmacro -%}
