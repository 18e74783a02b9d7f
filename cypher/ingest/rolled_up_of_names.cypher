// The rolled-up returns along transitions that begin or end at one of these names.
CALL () {
  UNWIND $names AS name MATCH (r:RolledUp {before: name}) RETURN r
  UNION
  UNWIND $names AS name MATCH (r:RolledUp {after: name}) RETURN r
}
RETURN r.search AS search, r.before AS before, r.after AS after, r.task AS task, r.level AS level,
  r.count AS count, r.micros AS micros
