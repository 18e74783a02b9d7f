// What failed and how: verdicts of a search's candidates by technique, with one candidate's words each; what passed is left out.
// :param search => 'ID of the search'
MATCH (a:Attempt {search: $search})
WITH a.technique AS technique, coalesce(a.verdict, a.outcome) AS outcome, a.reason AS reason
WHERE outcome <> 'passed'
RETURN technique, outcome, count(*) AS times, head(collect(reason)) AS words
ORDER BY times DESC, technique
