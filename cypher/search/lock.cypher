// Take a search's write lock until the transaction ends; what is read after it is what the last writer left.
MATCH (s:Search {id: $search})
SET s.lock = 0
RETURN properties(s) AS search
