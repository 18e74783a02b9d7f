// Unfold a state: add the states and edges that are not there, their sums at nothing, and mark it expanded.
// `$lists` is one map, for Neo4j plans anew for every size and kind of a list that is a parameter of its own.
MATCH (s:Search {id: $search})
SET s.lock = 0
WITH s
CALL (s) {
  UNWIND $lists.states AS row
  MERGE (n:State {search: $search, id: row.id})
  ON CREATE SET n.technique = row.technique, n.name = row.technique, n.expanded = false, n.visits = 0, n.value_sum = 0.0
  MERGE (s)-[:HAS_STATE]->(n)
  RETURN count(n) AS states
}
CALL () {
  UNWIND $lists.edges AS row
  MATCH (u:State {search: $search, id: row.source})
  MATCH (v:State {search: $search, id: row.target})
  MERGE (u)-[e:EXPLORED]->(v)
  ON CREATE SET e += {prior: row.prior, visits: 0, value_sum: 0.0, value_sq_sum: 0.0, in_flight: 0, refusals: 0}
  RETURN count(e) AS edges
}
OPTIONAL MATCH (n:State {search: $search, id: $state})
SET n.expanded = true
RETURN edges, n.id AS state
