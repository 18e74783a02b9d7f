// Mark a search finished with its answer.
MATCH (s:Search {id: $search})
SET s.status = 'finished', s.best_attempt = $best_attempt, s.summary = $summary
RETURN s.id AS search
