// The unfinished rollouts of runners whose lease has ended by the server's clock.
MATCH (o:Rollout {status: 'begun'})
MATCH (r:Runner {id: o.runner})
WHERE r.heartbeat_at + r.lease * 1000000 < timestamp() * 1000
RETURN o.id AS rollout, o.search AS search
