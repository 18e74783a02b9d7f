// What the graph's shape takes from each trajectory with one of these phrases: no code.
UNWIND $phrases AS phrase
MATCH (:Step {phrase: phrase})<-[:HAS_STEP]-(t:Trajectory)
WITH DISTINCT t
RETURN t.task AS task,
  COLLECT {
    MATCH (t)-[has:HAS_STEP]->(s:Step)
    RETURN [s.phrase, s.example, s.gain] ORDER BY has.index
  } AS steps
