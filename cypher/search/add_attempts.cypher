// Add the attempts that are not there, numbered in the order given, under the search's lock.
// `$lists` is one map, for Neo4j plans anew for every size and kind of a list that is a parameter of its own.
MATCH (s:Search {id: $search})
WITH s, s.attempts AS first
SET s.attempts = first + size($lists.rows)
WITH s, first
UNWIND range(0, size($lists.rows) - 1) AS place
WITH s, first, place, $lists.rows[place] AS row
MERGE (a:Attempt {id: row.id})
ON CREATE SET a = row, a.number = first + place
WITH a, row
MATCH (n:State {search: $search, id: row.target})
MERGE (a)-[:ARRIVES_AT]->(n)
