{%- macro column_periods(feed, table) -%}
    {%- if not execute or graph.sources is not defined -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set declared = [] -%}
    {%- for source in graph.sources.values() if source.source_name == feed and source.name == table -%}
        {%- do declared.extend(source.config.get('meta', {}).get('columns') or source.meta.get('columns') or []) -%}
    {%- endfor -%}
    {%- if not declared -%}
        {{ exceptions.raise_compiler_error(
            "the source " ~ feed ~ "." ~ table ~ " does not say in which order its files hold the columns. Add it to its "
            ~ "declaration, for example `config: {meta: {columns: [id, name]}}`."
        ) }}
    {%- endif -%}
    {%- if not declared | select('mapping') | list -%}
        {{ return([{'columns': declared, 'when': none}]) }}
    {%- endif -%}
    {%- set periods = [] -%}
    {%- for period in declared -%}
        {%- set columns = period.get('columns') if period is mapping and not period.keys() | reject('in', ['columns', 'when']) | list -%}
        {%- if not columns or columns is string or columns is mapping -%}
            {{ exceptions.raise_compiler_error(
                "a period of the columns of " ~ feed ~ "." ~ table ~ " is declared as " ~ period ~ "; it must say `columns:` (their "
                ~ "names, as they stand in its lines), and may say `when:` (a condition in SQL over source_file, landed_at and "
                ~ "fields), for example `{columns: [id, name, city], when: \"source_file >= 'shop/orders/2026'\"}`."
            ) }}
        {%- endif -%}
        {%- for earlier in periods if earlier.columns | length == columns | length and not period.get('when') -%}
            {{ exceptions.raise_compiler_error(
                "two periods of the columns of " ~ feed ~ "." ~ table ~ " have " ~ columns | length ~ " values: " ~ earlier.columns | join(', ')
                ~ " and " ~ columns | join(', ') ~ ". No number of values tells them apart; say of the later one, with `when:`, which "
                ~ "lines are its own, for example `when: \"source_file >= 'shop/orders/2026'\"`."
            ) }}
        {%- endfor -%}
        {%- do periods.append({'columns': columns, 'when': period.get('when')}) -%}
    {%- endfor -%}
    {{ return(periods) }}
{%- endmacro -%}
