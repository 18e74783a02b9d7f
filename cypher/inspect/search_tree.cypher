// A task's whole tree: every state and edge that its searches walked.
// :param task => 'saxpy'
MATCH (s:Search {task: $task})
MATCH path = (from:State {search: s.id})-[e:EXPLORED]->(to:State)
WHERE e.visits > 0
RETURN path
LIMIT 300
