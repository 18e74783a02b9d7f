// A runner lives: its lease starts again.
MATCH (r:Runner {id: $runner})
SET r.heartbeat_at = timestamp() * 1000
RETURN r.id AS runner
