{%- macro default__logged_tables() -%}
    {#- Written by `highwater add-table`: every change log, with the sources that feed it as raw and as dbt name them. -#}
    {{ return([
        {'entity': 'contacts', 'sources': [['datastream_crm', 'contacts']], 'tables': ['contacts']},
        {'entity': 'customers', 'sources': [['datastream_user1', 'customers']], 'tables': ['customers']},
        {'entity': 'employees', 'sources': [['datastream_hr', 'employees']], 'tables': ['employees']},
        {'entity': 'invoices', 'sources': [['debezium_erp', 'invoices']], 'tables': ['invoices']},
        {'entity': 'items', 'sources': [['tungsten_shop', 'items']], 'tables': ['items']},
        {'entity': 'nation', 'sources': [['arcion_tpch', 'nation']], 'tables': ['nation']},
        {'entity': 'orders', 'sources': [['tungsten_shop', 'orders']], 'tables': ['orders']},
        {'entity': 'payments', 'sources': [['debezium_erp', 'payments']], 'tables': ['payments']},
        {'entity': 'region', 'sources': [['arcion_tpch', 'region']], 'tables': ['region']},
        {'entity': 'shipments', 'sources': [['dms_sales', 'shipments']], 'tables': ['shipments']},
        {'entity': 'stock_levels', 'sources': [['dms_stock', 'stock_levels']], 'tables': ['stock_levels']},
        {'entity': 'suppliers', 'sources': [['arcion_files', 'suppliers']], 'tables': ['suppliers']},
        {'entity': 'table1', 'sources': [['datastream_user1', 'table1']], 'tables': ['table1']},
    ]) }}
{%- endmacro -%}
