"""Spark and dbt: what starts and runs them, what they report, and the tables of a lake by their folders."""
