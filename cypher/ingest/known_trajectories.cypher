// Which of these trajectories stand already, with their steps' verdicts: a string in JSON, or null where there is none.
UNWIND $ids AS id
MATCH (t:Trajectory {id: id})
RETURN t.id AS id, COLLECT { MATCH (t)-[:HAS_STEP]->(s:Step) RETURN s.verdict } AS verdicts
