// Every task's share of every transition.
MATCH (c:Share)
RETURN c.before AS before, c.after AS after, c.task AS task, properties(c) AS sums
