// Write again the calls that unfinished rollouts hold.
MATCH (s:Search {id: $search})
SET s.reserved = $reserved
