// The searches whose id begins so.
MATCH (s:Search)
WHERE s.id STARTS WITH $prefix
RETURN properties(s) AS search
