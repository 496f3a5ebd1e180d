"""Built tables, written anew: compaction, rebuilds, replays, resyncs, retention, recovery."""
