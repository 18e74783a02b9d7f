// The reasoning graph: techniques and the transitions between them, those with the most examples first.
MATCH path = (:Technique)-[t:TRANSITION]->(:Technique)
RETURN path
ORDER BY t.examples DESC
LIMIT 200
