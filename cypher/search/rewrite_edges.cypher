// Write again what unfinished rollouts hold in flight on each edge, and its `q`.
UNWIND $rows AS row
MATCH (u:State {search: $search, id: row.source})-[e:EXPLORED]->(v:State {search: $search, id: row.target})
SET e.in_flight = row.in_flight, e.q = CASE WHEN e.visits > 0 THEN round(e.value_sum / e.visits, 2) END
