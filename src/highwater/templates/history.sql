-- its current versions are compared with the view: depends_on {{ ref('<< entity >>') }}
{{ highwater.row_history(ref('<< entity >>_changes'), '<< entity >>') }}
