// One search by its id.
MATCH (s:Search {id: $search})
RETURN properties(s) AS search
