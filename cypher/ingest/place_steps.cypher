// Write steps' places in the graph again; the techniques stand already.
UNWIND $rows AS row
MATCH (s:Step {id: row.id})
MATCH (t:Technique {name: row.technique})
OPTIONAL MATCH (s)-[old:APPLIES]->()
DELETE old
WITH DISTINCT s, t, row
CREATE (s)-[:APPLIES]->(t)
SET s.phrase = row.phrase, s.before = row.before, s.technique = row.technique, s.example = row.example, s.gain = row.gain
