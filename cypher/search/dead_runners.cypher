// Runners whose lease has ended by the server's clock.
MATCH (r:Runner)
WHERE r.heartbeat_at + r.lease * 1000 < timestamp()
RETURN r.id AS id
