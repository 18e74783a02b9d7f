// One page, by id, of the vectors of the code before each example of any transition, as two lists in one row.
MATCH (s:Step)
USING INDEX s:Step(id)
WHERE s.id > $last AND s.example
  AND ($task IS NULL OR s.task <> $task) AND ($function IS NULL OR s.function <> $function)
WITH s ORDER BY s.id LIMIT $page
RETURN collect(s.id) AS ids, collect(s.vector) AS vectors
