// One attempt by its id.
MATCH (a:Attempt {id: $attempt})
RETURN a.record AS record, a.code AS code
