// The schema's number, or no row where no migration has run.
MATCH (g:Regraph {id: 'regraph'})
RETURN g.schema AS schema
