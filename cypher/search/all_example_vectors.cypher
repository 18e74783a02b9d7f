// The vectors of the code before each example of any transition.
MATCH (s:Step {example: true})
WHERE ($task IS NULL OR s.task <> $task) AND ($function IS NULL OR s.function <> $function)
RETURN s.id AS id, s.vector AS vector
