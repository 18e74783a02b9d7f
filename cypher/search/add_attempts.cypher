// Add the attempts that are not there, numbered in the order given, under the search's lock.
// `$given` is one map, for Neo4j plans anew for every size and kind of a list or text that is a parameter of its own.
CYPHER replan=skip  // however the search grows, every match below begins at a unique key
MATCH (s:Search {id: $search})
WITH s, s.attempts AS first
SET s.attempts = first + size($given.rows)
WITH s, first
UNWIND range(0, size($given.rows) - 1) AS place
WITH s, first, place, $given.rows[place] AS row
MERGE (a:Attempt {id: row.id})
ON CREATE SET a = row, a.number = first + place
WITH a, row
MATCH (n:State {search: $search, id: row.target})
MERGE (a)-[:ARRIVES_AT]->(n)
