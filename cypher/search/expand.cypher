// Unfold a state: add the states and edges that are not there, their sums at nothing, and mark it expanded.
// `$given` is one map, for Neo4j plans anew for every size and kind of a list or text that is a parameter of its own.
CYPHER replan=skip  // however the search grows, every match below begins at a unique key
MATCH (s:Search {id: $search})
SET s.lock = 0
WITH s
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
OPTIONAL MATCH (n:State {search: $search, id: $given.state})
SET n.expanded = true
RETURN edges, n.id AS state
