// Where runners disagree: edges whose returns spread widest; a large sigma says that the same step sometimes pays and sometimes fails.
// :param search => 'ID of the search'
MATCH (from:State {search: $search})-[e:EXPLORED]->(to:State)
WHERE e.visits > 1
WITH from, e, to, e.value_sq_sum / e.visits - (e.value_sum / e.visits) ^ 2 AS variance
RETURN from.technique AS from, to.technique AS to, e.visits AS N, e.q AS Q, round(sqrt(CASE WHEN variance > 0 THEN variance ELSE 0 END), 2) AS sigma
ORDER BY sigma DESC
LIMIT 25
