// The transitions out of one technique, each with its sums over all tasks and the share of the task to leave out.
MATCH (g:Regraph {id: 'regraph'})
SET g.lock = 0
WITH g
MATCH (b:Technique {name: $before})-[t:TRANSITION]->(a:Technique)
OPTIONAL MATCH (c:Share {before: b.name, after: a.name, task: $task})
RETURN b.name AS before, a.name AS after, properties(t) AS total, properties(c) AS share
