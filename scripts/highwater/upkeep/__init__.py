"""Built tables, written anew: compaction, rebuilds, replays, resyncs, retention, recovery.

Imports: runtime, formats, catalog, spark, landing, scaffold, builds.
"""
