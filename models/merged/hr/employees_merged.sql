{{ highwater.base_rows(ref('employees_changes'), 'employees') }}
