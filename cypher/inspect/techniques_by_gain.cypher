// Techniques by gain: which transitions made kernels faster, measured on one GPU before and after, over every task.
// gain is the geometric mean of time before / time after; the first step's is against the sequential code.
MATCH (from:Technique)-[t:TRANSITION]->(to:Technique)
WHERE t.gain_count > 0
RETURN from.name AS from, to.name AS to, t.gain_count AS measured, round(2 ^ (t.gain_micros / 1000000.0 / t.gain_count), 2) AS gain, t.examples AS examples
ORDER BY gain DESC
LIMIT 50
