// Let the steps of a phrase apply another technique, and the steps after them come from it.
UNWIND $rows AS row
MATCH (s:Step {phrase: row.phrase})
MATCH (t:Technique {name: row.technique})
OPTIONAL MATCH (s)-[old:APPLIES]->(:Technique)
DELETE old
WITH DISTINCT s, t
CREATE (s)-[:APPLIES]->(t)
SET s.technique = t.name
WITH s, t
MATCH (s)<-[:HAS_STEP]-(:Trajectory)-[has:HAS_STEP]->(next:Step)
WHERE has.index = s.position + 1
SET next.before = t.name
