"""Source databases that are asked directly: extraction, patches, and exports of a running database."""
