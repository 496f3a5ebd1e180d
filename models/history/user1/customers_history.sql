-- its current versions are compared with the view: depends_on {{ ref('customers') }}
{{ highwater.row_history(ref('customers_changes'), 'customers', ignored=['updated_at']) }}
