"""Answers about a lake: where every table stands, and queries.

Imports: runtime, catalog, landing, builds, upkeep.
"""
