// Remove every share, before they are written again.
MATCH (c:Share)
DELETE c
