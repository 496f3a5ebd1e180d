"""What goes around a build of dbt: the last one, rejected records and their thresholds, held publish groups."""
