// Best path of a search: from the start code to the fastest verified kernel, one state a step.
// Follow the arrows; each shows how often the search went there (N) and what came back on average (Q).
// :param search => 'ID of the search'
MATCH (s:Search {id: $search})
MATCH (root:State {search: s.id, id: s.root})
MATCH (:Attempt {id: s.best_attempt})-[:ARRIVES_AT]->(goal:State)
MATCH path = shortestPath((root)-[:EXPLORED*..20]->(goal))
RETURN path
