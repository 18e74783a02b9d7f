// Set a search's returns along transitions, in place of those with the same key.
UNWIND $rows AS row
MERGE (r:RolledUp {search: row.search, before: row.before, after: row.after})
SET r.task = row.task, r.level = row.level, r.count = row.count, r.micros = row.micros
