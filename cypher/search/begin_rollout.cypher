// Count a rollout as in flight on the edges of its path and reserve its calls, under the search's lock.
// `$given` is one map, for Neo4j plans anew for every size and kind of a list or text that is a parameter of its own.
CYPHER replan=skip  // however the search grows, every match below begins at a unique key
MATCH (s:Search {id: $search})
SET s.reserved = s.reserved + $calls
CREATE (o:Rollout {id: $rollout, search: $search, runner: $runner, path: $given.path, calls: $calls, status: 'begun'})
WITH s
UNWIND $given.edges AS edge
MATCH (u:State {search: $search, id: edge[0]})-[e:EXPLORED]->(v:State {search: $search, id: edge[1]})
SET e.in_flight = e.in_flight + 1
RETURN count(e) AS edges
