// Take back what an unfinished rollout held, under the search's lock.
MATCH (s:Search {id: $search})
SET s.reserved = s.reserved - $granted
WITH s
MATCH (o:Rollout {id: $rollout})
SET o.status = 'reclaimed'
WITH s
UNWIND $held AS edge
MATCH (u:State {search: $search, id: edge[0]})-[e:EXPLORED]->(v:State {search: $search, id: edge[1]})
SET e.in_flight = e.in_flight - 1
