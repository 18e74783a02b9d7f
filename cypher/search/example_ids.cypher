// The first examples of a transition by id.
// `$given` is one map, for Neo4j plans anew for every size and kind of a list or text that is a parameter of its own.
MATCH (s:Step {before: $given.before, technique: $given.after})
WHERE s.example AND ($given.task IS NULL OR s.task <> $given.task) AND ($given.function IS NULL OR s.function <> $given.function)
RETURN s.id AS id ORDER BY id LIMIT $limit
