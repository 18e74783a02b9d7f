// Take the knowledge half's write lock until the transaction ends; setting a property to what it is locks and writes nothing.
MATCH (g:Regraph {id: 'regraph'})
SET g.lock = 0
RETURN g.schema AS schema
