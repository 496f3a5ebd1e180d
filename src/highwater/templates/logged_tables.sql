{%- macro default__logged_tables() -%}
    {#- Written by `highwater add-table`: the tables whose logs the ledger and its lists wait for. -#}
    {{ return([
<% for entity in entities %>
        '<< entity >>',
<% endfor %>
    ]) }}
{%- endmacro -%}
