// Why was this edge chosen: every way out of one technique, as the search sees it.
// Q is the mean return of N finished visits, prior is what other tasks taught before the first visit, best the largest return.
// :param {search: 'ID of the search', technique: 'init'}
MATCH (from:State {search: $search, technique: $technique})-[e:EXPLORED]->(to:State)
RETURN to.technique AS technique, e.visits AS N, e.q AS Q, round(e.best, 2) AS best, round(e.prior, 2) AS prior, e.in_flight AS in_flight, e.refusals AS refusals
ORDER BY N DESC, Q DESC
