// Create a search with its root state, unless it stands already.
MERGE (s:Search {id: $id})
ON CREATE SET s += $properties, s.calls = 0, s.reserved = 0, s.attempts = 0
MERGE (n:State {search: $id, id: s.root})
ON CREATE SET n.technique = $technique, n.name = $technique, n.expanded = false, n.visits = 0, n.value_sum = 0.0
MERGE (s)-[:HAS_STATE]->(n)
RETURN properties(s) AS search
