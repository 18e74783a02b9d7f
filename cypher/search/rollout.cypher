// Take a search's write lock until the transaction ends, and read its budget and one of its rollouts.
CYPHER replan=skip  // however the search grows, every match below begins at a unique key
MATCH (s:Search {id: $search})
SET s.lock = 0
WITH s
OPTIONAL MATCH (o:Rollout {id: $rollout})
RETURN s.status AS open, s.budget - s.calls - s.reserved AS left,
  o.search AS search, o.status AS status, o.path AS path, o.calls AS calls, o.token AS token
