// What a search rolled up before.
MATCH (r:RolledUp {search: $search})
WHERE r.before IS NOT NULL AND r.after IS NOT NULL
RETURN r.search AS search, r.before AS before, r.after AS after, r.task AS task, r.level AS level,
  r.count AS count, r.micros AS micros
