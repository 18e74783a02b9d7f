// Examples of a transition: whose code showed it, and what it gained there (time before / time after, measured).
// :param {from: 'init', to: 'thread parallelization'}
MATCH (to:Technique {name: $to})<-[:APPLIES]-(step:Step {before: $from})<-[:HAS_STEP]-(trajectory:Trajectory)
RETURN trajectory.name AS kernel, step.method AS method, step.detail AS detail, round(2 ^ step.gain, 2) AS gain
LIMIT 25
