// Add to the sums of transitions over all tasks; one left with nothing goes.
UNWIND $rows AS row
MATCH (b:Technique {name: row.before})
MATCH (a:Technique {name: row.after})
MERGE (b)-[t:TRANSITION]->(a)
ON CREATE SET t += {examples: 0, gain_count: 0, gain_micros: 0, return_count: 0, return_micros: 0,
  modelled_count: 0, modelled_micros: 0}
SET t.examples = t.examples + row.examples,
  t.gain_count = t.gain_count + row.gain_count, t.gain_micros = t.gain_micros + row.gain_micros,
  t.return_count = t.return_count + row.return_count, t.return_micros = t.return_micros + row.return_micros,
  t.modelled_count = t.modelled_count + row.modelled_count, t.modelled_micros = t.modelled_micros + row.modelled_micros
WITH t
WHERE t.examples = 0 AND t.return_count = 0 AND t.modelled_count = 0
DELETE t
