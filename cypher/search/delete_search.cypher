// Remove a search with its states, edges, runners and rollouts; its attempts are gone already.
MATCH (s:Search {id: $search})
CALL (s) { MATCH (s)-[:HAS_STATE]->(n:State) DETACH DELETE n }
CALL () { MATCH (r:Runner {search: $search}) DETACH DELETE r }
CALL () { MATCH (o:Rollout {search: $search}) DETACH DELETE o }
DETACH DELETE s
