// Add or update techniques by name; an empty description does not overwrite one that is not.
UNWIND $rows AS row
MERGE (t:Technique {name: row.name})
ON CREATE SET t.description = '', t.shipped = false, t.examples = 0, t.trajectories = 0
SET t.given = true,
  t.description = CASE row.description WHEN '' THEN t.description ELSE row.description END,
  t.shipped = t.shipped OR row.shipped
