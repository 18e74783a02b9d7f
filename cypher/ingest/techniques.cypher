// Every technique but the root; `alias_of` is set for a name that is an alias of another technique.
MATCH (g:Regraph {id: 'regraph'})
SET g.lock = 0
WITH g
MATCH (t:Technique)
WHERE t.name <> 'init'
OPTIONAL MATCH (a:Alias {name: t.name})-[:NAMES]->(other:Technique)
WHERE other <> t
RETURN t.name AS name, t.description AS description, t.shipped AS shipped, t.given AS given,
  t.examples AS examples, t.trajectories AS trajectories, other.name AS alias_of
