// What failed and how: verdicts of a search's candidates by technique, with one candidate's words each.
// :param search => 'ID of the search'
MATCH (a:Attempt {search: $search})
RETURN a.technique AS technique, coalesce(a.verdict, a.outcome) AS outcome, count(*) AS times, head(collect(a.reason)) AS words
ORDER BY times DESC, technique
