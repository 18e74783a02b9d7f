// Write again what unfinished rollouts hold in flight on each edge.
UNWIND $rows AS row
MATCH (u:State {search: $search, id: row.source})-[e:EXPLORED]->(v:State {search: $search, id: row.target})
SET e.in_flight = row.in_flight
