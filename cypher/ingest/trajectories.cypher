// One page of trajectories by id, each with its steps in order and their places in the graph; one consistent view.
MATCH (g:Regraph {id: 'regraph'})
SET g.lock = 0
WITH g
MATCH (t:Trajectory)
WHERE t.id > $last
WITH t ORDER BY t.id LIMIT $page
RETURN t.id AS id, t.task AS task, t.author AS author, t.function AS function, t.source AS source, t.search AS search,
  t.length AS length,
  COLLECT {
    MATCH (t)-[has:HAS_STEP]->(s:Step)
    OPTIONAL MATCH (s)-[:APPLIES]->(q:Technique)
    RETURN s {.think, .method, .detail, .code, .verdict, .phrase, .before, .example, .gain, position: has.index,
      technique: CASE q.name WHEN s.technique THEN q.name END} AS step
    ORDER BY has.index
  } AS steps
ORDER BY id
