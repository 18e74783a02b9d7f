// Remove one page of a search's attempts.
MATCH (a:Attempt {search: $search})
WHERE a.number >= 0
WITH a LIMIT $page
DETACH DELETE a
RETURN count(*) AS deleted
