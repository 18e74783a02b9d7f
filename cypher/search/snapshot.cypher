// What selection reads, in one round trip: the search, its states and its edges as the last finished rollout left them.
CYPHER replan=skip  // however the search grows, every match below begins at a unique key
MATCH (s:Search {id: $search})
SET s.lock = 0
WITH s
RETURN properties(s) AS search,
  COLLECT {
    MATCH (s)-[:HAS_STATE]->(n:State)
    RETURN [n.id, n.technique, n.expanded, n.visits, n.value_sum, n.best_speedup, n.best_attempt]
  } AS states,
  COLLECT {
    MATCH (s)-[:HAS_STATE]->(u:State)-[e:EXPLORED]->(v:State)
    RETURN [u.id, v.id, e.prior, e.visits, e.value_sum, e.value_sq_sum, e.best, e.in_flight, e.refusals]
  } AS edges
