// Remove those of these techniques that nothing names any more.
UNWIND $names AS name
MATCH (t:Technique {name: name})
WHERE NOT t.given AND NOT (t)--()
DELETE t
