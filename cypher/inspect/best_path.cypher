// Best path of a search: from the sequential code to the fastest verified kernel, one state a step.
// Follow the arrows; each shows how often the search went there (N) and what it got back on average (Q).
// :param search => 'ID of the search'
MATCH (s:Search {id: $search})
MATCH (best:Attempt {id: coalesce(s.best_attempt, '')})
MATCH (goal:State {search: s.id, best_attempt: best.id})
MATCH (root:State {search: s.id, technique: 'init'})
MATCH path = shortestPath((root)-[:EXPLORED*0..20]->(goal))
RETURN path
