{%- macro default__logged_tables() -%}
    {#- Written by `highwater add-table`: every change log, with the sources that feed it as raw and as dbt name them. -#}
    {{ return([
<% for entity, sources in tables %>
        {'entity': '<< entity >>', 'sources': [<% for feed, table in sources %>['<< feed >>', << table | jinja >>]<< ', ' if not loop.last >><% endfor %>], 'tables': [<% for source in sources %>'<< (names or {}).get(source, source[1]) >>'<< ', ' if not loop.last >><% endfor %>]},
<% endfor %>
    ]) }}
{%- endmacro -%}
