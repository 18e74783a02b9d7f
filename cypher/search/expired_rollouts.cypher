// The unfinished rollouts of runners whose lease has ended by the server's clock; a sign of life from the far future is of a clock set back.
MATCH (o:Rollout {status: 'begun'})
MATCH (r:Runner {id: o.runner})
WHERE abs(timestamp() * 1000 - r.heartbeat_at) > r.lease * 1000000
RETURN o.id AS rollout, o.search AS search
