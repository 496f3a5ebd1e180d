{%- macro default__logged_tables() -%}
    {#- Written by `highwater add-table`: every change log, with the sources that feed it. -#}
    {{ return([
        {'entity': 'contacts', 'sources': [['datastream_crm', 'contacts']]},
        {'entity': 'customers', 'sources': [['datastream_user1', 'customers']]},
        {'entity': 'employees', 'sources': [['datastream_hr', 'employees']]},
        {'entity': 'invoices', 'sources': [['debezium_erp', 'invoices']]},
        {'entity': 'items', 'sources': [['tungsten_shop', 'items']]},
        {'entity': 'nation', 'sources': [['arcion_tpch', 'nation']]},
        {'entity': 'orders', 'sources': [['tungsten_shop', 'orders']]},
        {'entity': 'payments', 'sources': [['debezium_erp', 'payments']]},
        {'entity': 'region', 'sources': [['arcion_tpch', 'region']]},
        {'entity': 'shipments', 'sources': [['dms_sales', 'shipments']]},
        {'entity': 'stock_levels', 'sources': [['dms_stock', 'stock_levels']]},
        {'entity': 'suppliers', 'sources': [['arcion_files', 'suppliers']]},
        {'entity': 'table1', 'sources': [['datastream_user1', 'table1']]},
    ]) }}
{%- endmacro -%}
