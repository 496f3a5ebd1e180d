"""Maintenance of built tables: compaction, rebuilds, replays, resyncs, alterations, retention, recovery."""
