// Write again each state's best attempt.
UNWIND $rows AS row
MATCH (n:State {search: $search, id: row.id})
SET n.best_attempt = row.attempt, n.best_speedup = row.speedup,
  n.name = n.technique + coalesce(' ×' + toString(round(row.speedup, 2)), '')
