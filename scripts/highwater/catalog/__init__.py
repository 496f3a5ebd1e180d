"""What the project declares, known in one place: feeds, tables, columns, names, groups; and its YAML, read and changed.

Imports: runtime, formats.
"""
