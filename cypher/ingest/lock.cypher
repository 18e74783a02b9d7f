// Take the knowledge half's write lock until the transaction ends; removing a property that is not there locks and writes nothing.
MATCH (g:Regraph {id: 'regraph'})
REMOVE g.locked
RETURN g.schema AS schema
