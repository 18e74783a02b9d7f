// A search's visits and sums of returns by the techniques at the ends of its edges, and what it rolled up before.
MATCH (:Search {id: $search})-[:HAS_STATE]->(u:State)-[e:EXPLORED]->(v:State)
WHERE e.visits > 0
RETURN u.technique AS before, v.technique AS after, sum(e.visits) AS visits, sum(e.value_sum) AS value_sum
