// Let aliases name the technique that their chain ends at; the techniques stand already.
UNWIND $rows AS row
MATCH (a:Alias {name: row.alias})
MATCH (t:Technique {name: row.technique})
OPTIONAL MATCH (a)-[old:NAMES]->()
DELETE old
WITH DISTINCT a, t
CREATE (a)-[:NAMES]->(t)
