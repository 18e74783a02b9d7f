// How much the graph holds.
MATCH (g:Regraph {id: 'regraph'})
SET g.lock = 0
RETURN
  COUNT { MATCH (t:Technique) WHERE t.name <> 'init'
    AND NOT EXISTS { MATCH (:Alias {name: t.name})-[:NAMES]->(other:Technique) WHERE other <> t } } AS techniques,
  COUNT { MATCH (a:Alias) RETURN a } AS aliases,
  COUNT { MATCH (t:Trajectory) RETURN t } AS trajectories,
  COUNT { MATCH (s:Step) RETURN s } AS steps,
  COUNT { MATCH ()-[t:TRANSITION]->() RETURN t } AS transitions,
  reduce(total = 0, n IN COLLECT { MATCH ()-[t:TRANSITION]->() RETURN t.examples } | total + n) AS examples,
  COUNT { MATCH (s:Search) RETURN s } AS searches,
  COUNT { MATCH (a:Attempt) RETURN a } AS attempts
