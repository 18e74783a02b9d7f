// What is known of a rollout; no row where it never began.
MATCH (o:Rollout {id: $rollout})
RETURN o.search AS search, o.status AS status, o.path AS path, o.calls AS calls, o.token AS token
