// Techniques by gain: which transitions made kernels faster, measured, over every task; gain is the mean ratio of times.
MATCH (from:Technique)-[t:TRANSITION]->(to:Technique)
WHERE t.gain_count > 0
RETURN from.name AS from, to.name AS to, t.gain_count AS measured, 2 ^ t.mean_gain AS gain, t.examples AS examples
ORDER BY gain DESC
LIMIT 50
