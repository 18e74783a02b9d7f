// Record that a migration ran. The Regraph node is also the lock of the knowledge half, and the root stands from the start.
MERGE (g:Regraph {id: 'regraph'})
SET g.schema = $number, g.name = 'regraph'
MERGE (m:Migration {number: $number})
ON CREATE SET m.name = $name, m.applied_at = datetime()
MERGE (g)-[:MIGRATED_BY]->(m)
MERGE (t:Technique {name: 'init'})
ON CREATE SET t.description = 'the sequential code, before any step', t.shipped = false, t.given = false,
  t.examples = 0, t.trajectories = 0
