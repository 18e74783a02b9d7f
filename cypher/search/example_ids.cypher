// The first examples of a transition by id.
MATCH (s:Step {before: $before, technique: $after})
WHERE s.example AND ($task IS NULL OR s.task <> $task) AND ($function IS NULL OR s.function <> $function)
RETURN s.id AS id ORDER BY id LIMIT $limit
