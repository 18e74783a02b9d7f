"""Commands over the graph itself; the packages above add theirs by entry points."""
