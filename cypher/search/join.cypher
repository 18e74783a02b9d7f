// Register a runner; its heartbeat, in microseconds of the server's clock, starts now.
MATCH (s:Search {id: $search})
MERGE (r:Runner {id: $id})
SET r += $properties, r.heartbeat_at = timestamp() * 1000
WITH s, r
OPTIONAL MATCH (r)-[old:WORKS_ON]->(:Search)
DELETE old
WITH DISTINCT s, r
CREATE (r)-[:WORKS_ON]->(s)
RETURN r.id AS runner
