"""What the project declares, known in one place: feeds, tables, columns, names, groups; its YAML, read and changed."""
