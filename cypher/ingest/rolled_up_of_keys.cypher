// The rolled-up returns with one of these keys.
UNWIND $rows AS row
MATCH (r:RolledUp {search: row.search, before: row.before, after: row.after})
RETURN r.search AS search, r.before AS before, r.after AS after, r.task AS task, r.level AS level,
  r.count AS count, r.micros AS micros
