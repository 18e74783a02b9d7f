"""A search in a few lines for a person."""

from __future__ import annotations

from regraph_db.figures import figure
from regraph_db.records import Level
from search.outcome import SPEED_NOTES, SearchOutcome


def summary_lines(outcome: SearchOutcome) -> list[str]:
    """What was searched, what was found, and where the time went."""
    lines = [
        f"Search {outcome.search[:8]}: {outcome.task}, {outcome.strategy}, level {outcome.level}, "
        f"model {outcome.model}, seed {outcome.seed}",
        f"Calls: {outcome.calls} of {outcome.budget}; "
        + (", ".join(f"{count} {name}" for name, count in sorted(outcome.verdicts.items())) or "none yet"),
    ]
    best = outcome.best
    if best is None:
        lines.append("No correct kernel was found.")
    else:
        lines.append(f"Best: {_speed(outcome)}; path: {' → '.join(best.path) or 'one prompt'}")
    # What was not measured stands in the line of the best kernel already.
    said = SPEED_NOTES.get(outcome.level) if best is not None else None
    lines += [f"Note: {note}." for note in outcome.notes if note != said]
    if outcome.seconds.get("total") and outcome.calls:
        own = outcome.seconds["store"] + outcome.seconds["search"]
        lines.append(
            "Seconds: "
            + ", ".join(f"{part} {figure(round(seconds, 3))}" for part, seconds in outcome.seconds.items())
            + f"; store and search are {100 * own / outcome.seconds['total']:.2g} % of the total"
        )
    return lines


def _speed(outcome: SearchOutcome) -> str:
    best = outcome.best
    assert best is not None
    if best.speedup is None:
        return "a correct kernel, speed not measured"
    if outcome.level is Level.MODELLED:
        gpu = best.verdict.evidence.gpu or "a GPU"
        return f"{figure(best.speedup)} times the baseline (modelled for {gpu}, not measured)"
    interval = best.verdict.speedup
    spread = f" ({figure(interval.low)} to {figure(interval.high)})" if interval is not None else ""
    return f"{figure(best.speedup)} times the baseline{spread}, measured on {best.verdict.evidence.gpu or 'a GPU'}"
