// The techniques that these phrases are aliases of; a phrase without an alias gives no row.
UNWIND $phrases AS phrase
MATCH (a:Alias {name: phrase})-[:NAMES]->(t:Technique)
RETURN phrase, t.name AS technique
