{%- macro default__logged_tables() -%}
    {#- Written by `highwater add-table`: the tables whose logs the ledger and its lists wait for. -#}
    {{ return([
        'contacts',
        'customers',
        'employees',
        'invoices',
        'items',
        'nation',
        'orders',
        'payments',
        'region',
        'shipments',
        'stock_levels',
        'suppliers',
        'table1',
    ]) }}
{%- endmacro -%}
