// What Neo4j Browser shows of a search and does not follow from its sums: names of states, and `q` of explored edges.
MATCH (s:Search {id: $search})
SET s.lock = 0
WITH s
RETURN
  COLLECT {
    MATCH (s)-[:HAS_STATE]->(n:State)
    WITH n, n.technique + coalesce(' ×' + toString(round(n.best_speedup, 2)), '') AS due
    WHERE n.name IS NULL OR n.name <> due
    RETURN [n.id, n.name, due]
  } AS states,
  COLLECT {
    MATCH (s)-[:HAS_STATE]->(u:State)-[e:EXPLORED]->(v:State)
    WITH u, e, v, CASE WHEN e.visits > 0 THEN round(e.value_sum / e.visits, 2) END AS due
    WHERE (e.q IS NULL) <> (due IS NULL) OR abs(e.q - due) > 0.015
    RETURN [u.id, v.id, e.q, due]
  } AS edges
