// The techniques at the ends of a search's walked edges, with their visits and sums of returns.
MATCH (:Search {id: $search})-[:HAS_STATE]->(u:State)-[e:EXPLORED]->(v:State)
WHERE e.visits > 0
RETURN u.technique AS before, v.technique AS after, e.visits AS visits, e.value_sum AS value_sum
