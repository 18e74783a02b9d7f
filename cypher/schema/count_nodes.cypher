// How many nodes of any kind the database holds, from the server's own count.
MATCH (n)
RETURN count(n) AS nodes
