// Which of these trajectories stand already.
UNWIND $ids AS id
MATCH (t:Trajectory {id: id})
RETURN t.id AS id
