// Examples of a transition: whose code showed it, and what it gained there.
// :param {from: 'init', to: 'parallelization'}
MATCH (:Technique {name: $from})-[t:TRANSITION]->(:Technique {name: $to})
MATCH (step:Step {from: $from, technique: $to})<-[:HAS_STEP]-(trajectory:Trajectory)
RETURN trajectory.name AS kernel, step.method AS method, step.detail AS detail, step.gain AS gain
LIMIT 25
