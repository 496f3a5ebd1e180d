{%- macro sequence_in_epoch(feed, sequence) -%}
    {%- set table = model.sources[0][1] if execute and model.sources else none -%}
    {%- set epochs = [] -%}
    {%- set late = [] -%}
    {%- for numbered in highwater.epochs_of_feed(feed) -%}
        {%- set epoch = numbered.entry -%}
        {%- set condition = highwater._belongs_to_epoch(feed, epoch) -%}
        {%- if epoch.get('table', table) == table and epoch.get('baseline') -%}
            {%- do late.append(condition) -%}
        {%- elif epoch.get('table', table) == table -%}
            {%- do epochs.append({'condition': condition, 'section': 'ignored' if epoch.get('ignore') else '%016x' % numbered.number}) -%}
        {%- endif -%}
    {%- endfor -%}
concat(
    {%- if epochs %}
    case
        -- the last one that fits
        {%- for epoch in epochs | reverse %}
        when {{ epoch.condition }} then '{{ epoch.section }}/'
        {%- endfor %}
        else '0000000000000000/'
    end,
    {%- else %}
    '0000000000000000/',
    {%- endif %}
    {{ sequence | indent(4) }}
    {%- if late %},
    -- rows of the baseline that came late stand above those that came first, and below every change
    case when {{ sequence | indent(8) }} = {{ highwater.lowest_sequence() }} and ({{ late | join(' or ') }}) then '/0000000000000000' else '' end
    {%- endif %}
)
{%- endmacro -%}

{%- macro _belongs_to_epoch(feed, epoch) -%}
    {%- set unknown = epoch.keys() | reject('in', ['source', 'table', 'when', 'number', 'resync', 'ignore', 'baseline']) | list if epoch is mapping else ['?'] -%}
    {%- set meanings = [] -%}
    {%- for meaning in ['resync', 'ignore', 'baseline'] if epoch is mapping and epoch.get(meaning) -%}
        {%- do meanings.append(meaning) -%}
    {%- endfor -%}
    {%- if unknown or not (epoch.get('source') or epoch.get('when') or epoch.get('number')) or meanings | length > 1 -%}
        {{ exceptions.raise_compiler_error(
            "an epoch of the feed " ~ feed ~ " is declared as " ~ epoch ~ "; it must say `source:` (the identity of "
            ~ "the source), `when:` (a condition in SQL over source_file and metadata) or its `number:`, and may say `table:` (one "
            ~ "table of the feed) and one of `resync: true`, `ignore: true`, `baseline: true`."
        ) }}
    {%- endif -%}
    {%- set conditions = [] -%}
    {%- if epoch.get('source') -%}
        {%- do conditions.append("source_identity = '" ~ epoch.source ~ "'") -%}
    {%- endif -%}
    {%- if epoch.get('when') -%}
        {%- do conditions.append('(' ~ epoch.when ~ ')') -%}
    {%- endif -%}
    {{- conditions | join(' and ') or 'true' -}}
{%- endmacro -%}
