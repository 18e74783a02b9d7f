// The first examples of any transition by id.
MATCH (s:Step {example: true})
WHERE ($task IS NULL OR s.task <> $task) AND ($function IS NULL OR s.function <> $function)
RETURN s.id AS id ORDER BY id LIMIT $limit
