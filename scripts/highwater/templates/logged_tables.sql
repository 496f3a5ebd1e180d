{%- macro logged_tables() -%}
    {#- Written by `highwater add-table`: every change log, with the sources that feed it. -#}
    {{ return([
<% for entity, sources in tables %>
        {'entity': '<< entity >>', 'sources': [<% for feed, table in sources %>['<< feed >>', '<< table >>']<< ', ' if not loop.last >><% endfor %>]},
<% endfor %>
    ]) }}
{%- endmacro -%}
