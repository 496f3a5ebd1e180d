"""Answers about a lake: where every table stands, and queries."""
