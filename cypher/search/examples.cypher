// The chosen examples with their texts; the code before a first step is the trajectory's source.
UNWIND $ids AS id
MATCH (s:Step {id: id})<-[:HAS_STEP]-(t:Trajectory)
OPTIONAL MATCH (t)-[:HAS_STEP {index: s.position - 1}]->(p:Step)
RETURN s.id AS id, t.task AS task, t.function AS function, s.before AS source, s.technique AS target,
  s.method AS method, s.think AS think, s.detail AS detail, coalesce(p.code, t.source) AS before, s.code AS after,
  s.verdict AS verdict, s.gain AS gain
