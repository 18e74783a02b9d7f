// The rollouts of a search.
MATCH (o:Rollout {search: $search})
RETURN o.id AS id, o.runner AS runner, o.path AS path, o.calls AS calls, o.status AS status
