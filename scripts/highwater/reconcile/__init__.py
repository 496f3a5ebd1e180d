"""Comparing tables with their sources, and what repairs them.

Imports: runtime, formats, catalog, spark, landing, databases, upkeep, status.
"""
