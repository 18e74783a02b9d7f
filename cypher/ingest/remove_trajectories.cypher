// Delete trajectories with their steps; what the graph's shape took from each, as ingest/outlines gives it.
UNWIND $ids AS id
MATCH (t:Trajectory {id: id})
OPTIONAL MATCH (t)-[has:HAS_STEP]->(s:Step)
WITH t, t.task AS task, s, CASE WHEN s IS NOT NULL THEN [s.phrase, s.example, s.gain] END AS facts ORDER BY has.index
WITH t, task, collect(s) AS gone, collect(facts) AS steps
FOREACH (s IN gone | DETACH DELETE s)
DETACH DELETE t
RETURN task, steps
