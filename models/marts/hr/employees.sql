{{ highwater.current_rows(ref('employees_merged'), 'employees') }}
