// Every search's returns along every transition, names as the search had them.
MATCH (r:RolledUp)
RETURN r.search AS search, r.before AS before, r.after AS after, r.task AS task, r.level AS level,
  r.count AS count, r.micros AS micros
