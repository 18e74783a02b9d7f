// A task's whole tree: every state and edge that its searches walked.
// :param task => 'relu'
MATCH (s:Search {task: $task})
MATCH path = (:State {search: s.id})-[e:EXPLORED]->(:State)
WHERE e.visits > 0
RETURN path
LIMIT 300
