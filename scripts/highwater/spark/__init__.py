"""Spark and dbt: what starts and runs them, what is heard of them, and the tables of a lake by their folders."""
