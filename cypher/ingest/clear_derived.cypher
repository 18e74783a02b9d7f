// Remove what is derived, before it is written again: the transitions' and shares' sums and the techniques' counts.
MATCH (t:Technique)
SET t.examples = 0, t.trajectories = 0
WITH t
OPTIONAL MATCH (t)-[r:TRANSITION]->()
DELETE r
