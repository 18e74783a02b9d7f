// Add to one task's share of transitions, which leave-one-task-out takes away; one left with nothing goes.
UNWIND $rows AS row
MERGE (c:Share {before: row.before, after: row.after, task: row.task})
ON CREATE SET c += {examples: 0, gain_count: 0, gain_micros: 0, return_count: 0, return_micros: 0,
  modelled_count: 0, modelled_micros: 0}
SET c.examples = c.examples + row.examples,
  c.gain_count = c.gain_count + row.gain_count, c.gain_micros = c.gain_micros + row.gain_micros,
  c.return_count = c.return_count + row.return_count, c.return_micros = c.return_micros + row.return_micros,
  c.modelled_count = c.modelled_count + row.modelled_count, c.modelled_micros = c.modelled_micros + row.modelled_micros
WITH c
WHERE c.examples = 0 AND c.return_count = 0 AND c.modelled_count = 0
DELETE c
