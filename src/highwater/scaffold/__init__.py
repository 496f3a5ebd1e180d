"""What writes a project, its feeds and its tables, and checks what was written."""
