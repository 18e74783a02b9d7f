// Give a search a larger budget and open it again.
MATCH (s:Search {id: $search})
SET s.budget = $budget, s.status = 'open'
