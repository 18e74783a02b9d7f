// One page, by id, of the vectors of the code before each example of a transition; the nearest is chosen by the caller.
// Two lists in one row: a row for each would take the client three times as long.
MATCH (s:Step {before: $before, technique: $after})
USING INDEX s:Step(before, technique)
WHERE s.id > $last AND s.example
  AND ($task IS NULL OR s.task <> $task) AND ($function IS NULL OR s.function <> $function)
WITH s ORDER BY s.id LIMIT $page
RETURN collect(s.id) AS ids, collect(s.vector) AS vectors
