// Write a search as another store had it; nothing of it but attempts stands here.
MERGE (s:Search {id: $id})
SET s += $properties, s.attempts = coalesce(s.attempts, 0)
WITH s
CALL (s) { UNWIND $states AS row CREATE (s)-[:HAS_STATE]->(n:State) SET n = row RETURN count(n) AS states }
CALL () {
  UNWIND $edges AS row
  MATCH (u:State {search: $id, id: row.source})
  MATCH (v:State {search: $id, id: row.target})
  CREATE (u)-[e:EXPLORED]->(v)
  SET e = row.properties
  RETURN count(e) AS edges
}
CALL (s) { UNWIND $runners AS row CREATE (r:Runner)-[:WORKS_ON]->(s) SET r = row RETURN count(r) AS runners }
CALL () { UNWIND $rollouts AS row CREATE (o:Rollout) SET o = row RETURN count(o) AS rollouts }
RETURN edges
