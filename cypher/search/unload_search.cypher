// Remove a search's states, edges, runners and rollouts before newer ones are written; the search and its attempts stay.
MATCH (s:Search {id: $search})
CALL (s) { MATCH (s)-[:HAS_STATE]->(n:State) DETACH DELETE n }
CALL () { MATCH (r:Runner {search: $search}) DETACH DELETE r }
CALL () { MATCH (o:Rollout {search: $search}) DETACH DELETE o }
