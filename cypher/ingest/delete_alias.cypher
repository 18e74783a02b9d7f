// Take one relabel decision back.
MATCH (a:Alias {name: $alias})
DETACH DELETE a
