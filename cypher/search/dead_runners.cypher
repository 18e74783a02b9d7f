// Runners whose lease has ended by the server's clock.
MATCH (r:Runner)
WHERE abs(timestamp() * 1000 - r.heartbeat_at) > r.lease * 1000000
RETURN r.id AS id
