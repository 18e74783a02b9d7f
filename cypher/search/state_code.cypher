// The best verified code at a state, or the code that the search started from.
MATCH (n:State {search: $search, id: $state})<-[:HAS_STATE]-(s:Search)
OPTIONAL MATCH (a:Attempt {id: n.best_attempt})
RETURN coalesce(a.code, s.start_code) AS code
