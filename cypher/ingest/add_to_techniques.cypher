// Add to the counts of techniques; those that do not stand yet are made.
UNWIND $rows AS row
MERGE (t:Technique {name: row.name})
ON CREATE SET t.description = '', t.shipped = false, t.given = false, t.examples = 0, t.trajectories = 0
SET t.examples = t.examples + row.examples, t.trajectories = t.trajectories + row.trajectories
