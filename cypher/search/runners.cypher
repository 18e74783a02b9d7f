// The runners of a search.
MATCH (r:Runner {search: $search})
RETURN r.id AS id, r.search AS search, r.host AS host, r.pid AS pid, r.lease AS lease, r.heartbeat_at AS heartbeat_at
