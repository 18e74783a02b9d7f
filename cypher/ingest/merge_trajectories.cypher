// Create trajectories with their steps; the caller holds the lock, has left out known ones, and the techniques stand already.
UNWIND $rows AS row
CREATE (t:Trajectory)
SET t = row.properties
WITH t, row
UNWIND row.steps AS step
CREATE (t)-[:HAS_STEP {index: step.position}]->(s:Step)
SET s = step
WITH s
MATCH (q:Technique {name: s.technique})
CREATE (s)-[:APPLIES]->(q)
