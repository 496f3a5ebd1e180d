"""highwater's commands: what dbt cannot do (read files exactly once, rebuild, query) and running dbt itself."""
