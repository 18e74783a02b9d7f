// One page, by id, of the vectors of the code before each example of a transition; the nearest is chosen by the caller.
// Two lists in one row: a row for each would take the client three times as long.
// `$given` is one map, for Neo4j plans anew for every size and kind of a list or text that is a parameter of its own.
MATCH (s:Step {before: $given.before, technique: $given.after})
USING INDEX s:Step(before, technique)
WHERE s.id > $given.last AND s.example
  AND ($given.task IS NULL OR s.task <> $given.task) AND ($given.function IS NULL OR s.function <> $given.function)
WITH s ORDER BY s.id LIMIT $page
RETURN collect(s.id) AS ids, collect(s.vector) AS vectors
