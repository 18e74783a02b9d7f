// The reasoning graph: techniques and the transitions between them that have at least two examples.
MATCH path = (:Technique)-[t:TRANSITION]->(:Technique)
WHERE t.examples > 1
RETURN path
LIMIT 200
