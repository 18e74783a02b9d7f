// Every alias, with the technique that its chain ends at.
MATCH (a:Alias)
OPTIONAL MATCH (a)-[:NAMES]->(t:Technique)
RETURN a.name AS alias, a.technique AS technique, a.review AS review, a.record AS record, t.name AS resolved
