// Every search.
MATCH (s:Search)
RETURN properties(s) AS search
