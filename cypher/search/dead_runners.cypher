// Runners whose lease has ended by the server's clock.
MATCH (r:Runner)
WHERE r.heartbeat_at + r.lease * 1000000 < timestamp() * 1000
RETURN r.id AS id
