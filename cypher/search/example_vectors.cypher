// The vectors of the code before each example of a transition; the nearest is chosen by the caller.
MATCH (s:Step {before: $before, technique: $after})
WHERE s.example AND ($task IS NULL OR s.task <> $task) AND ($function IS NULL OR s.function <> $function)
RETURN s.id AS id, s.vector AS vector
