// One page of a search's attempts in the order they were written.
MATCH (a:Attempt {search: $search})
WHERE a.number > $last
RETURN a.number AS number, a.record AS record, a.code AS code ORDER BY number LIMIT $page
