// Write relabel decisions; what each names in the end is set by name_aliases.
UNWIND $rows AS row
MERGE (a:Alias {name: row.alias})
SET a.technique = row.technique, a.review = row.review, a.author = row.author, a.record = row.record
