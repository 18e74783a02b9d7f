// Finish a rollout under the search's lock, once: give back what it held, add its calls, states, edges, attempts and returns.
// Sums only grow by increments; `q` and `name` are their readable forms for Neo4j Browser and are read by nothing else.
// `$given` is one map, for Neo4j plans anew for every size and kind of a list or text that is a parameter of its own.
CYPHER replan=skip  // however the search grows, every match below begins at a unique key
MATCH (s:Search {id: $search})
SET s.reserved = s.reserved - $granted, s.calls = s.calls + $calls
WITH s
MATCH (o:Rollout {id: $rollout})
SET o.status = 'finished', o.token = $token
WITH s
CALL () {
  UNWIND $given.held AS edge
  MATCH (u:State {search: $search, id: edge[0]})-[e:EXPLORED]->(v:State {search: $search, id: edge[1]})
  SET e.in_flight = e.in_flight - 1
  RETURN count(e) AS released
}
CALL (s) {
  UNWIND $given.states AS row
  MERGE (n:State {search: $search, id: row.id})
  ON CREATE SET n.technique = row.technique, n.name = row.technique, n.expanded = false, n.visits = 0, n.value_sum = 0.0
  MERGE (s)-[:HAS_STATE]->(n)
  RETURN count(n) AS states
}
CALL () {
  UNWIND $given.edges AS row
  MATCH (u:State {search: $search, id: row.source})
  MATCH (v:State {search: $search, id: row.target})
  MERGE (u)-[e:EXPLORED]->(v)
  ON CREATE SET e += {prior: row.prior, visits: 0, value_sum: 0.0, value_sq_sum: 0.0, in_flight: 0, refusals: 0}
  RETURN count(e) AS edges
}
CALL () {
  UNWIND $given.returns AS row
  MATCH (u:State {search: $search, id: row.source})-[e:EXPLORED]->(v:State {search: $search, id: row.target})
  SET e.visits = e.visits + row.visits, e.value_sum = e.value_sum + row.value_sum,
    e.value_sq_sum = e.value_sq_sum + row.value_sq_sum, e.refusals = e.refusals + row.refusals,
    e.best = CASE WHEN row.best IS NULL OR e.best >= row.best THEN e.best ELSE row.best END
  SET e.q = CASE WHEN e.visits > 0 THEN round(e.value_sum / e.visits, 2) END
  RETURN count(e) AS returned
}
CALL () {
  UNWIND $given.nodes AS row
  MATCH (n:State {search: $search, id: row.state})
  SET n.visits = n.visits + row.visits, n.value_sum = n.value_sum + row.value_sum
  RETURN count(n) AS counted
}
CALL () {
  UNWIND $given.bests AS row
  MATCH (n:State {search: $search, id: row.state})
  WHERE n.best_attempt IS NULL OR coalesce(row.speedup, 0.0) > coalesce(n.best_speedup, 0.0)
  SET n.best_attempt = row.attempt, n.best_speedup = row.speedup,
    n.name = n.technique + coalesce(' ×' + toString(round(row.speedup, 2)), '')
  RETURN count(n) AS improved
}
RETURN released, edges, returned, counted
