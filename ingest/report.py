"""The summary of a run as text for people."""

from __future__ import annotations

from ingest.merging import Summary

_SHOWN = 8


def text_of(summary: Summary) -> str:
    """A few lines: what came in, what it changed, what was not accepted and what waits for a person."""
    document = summary.document()
    techniques, transitions = document["techniques"], document["transitions"]
    head = "Would merge" if summary.dry_run else "Merged"
    further = f"{summary.verified:,} of the known verified further, " if summary.verified else ""
    lines = [
        f"{head} {summary.merged:,} of {summary.read:,} trajectories ({summary.steps:,} steps); "
        f"{further}{summary.duplicates:,} known already, {summary.rejected:,} rejected.",
        f"Techniques: {techniques['new']} new, {techniques['known']} known. "
        f"Transitions: {transitions['new']} new, {transitions['known']} known.",
    ]
    if summary.verdicts:
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(summary.verdicts.items()))
        # Verdicts measured before were reached on a GPU, whatever this run's own level is.
        judged_here = sum(summary.verdicts.values()) - summary.measured
        level = f" ({judged_here:,} reached here at level {summary.level.value})" if judged_here else ""
        lines.append(f"Verdicts: {counts}{level}.")
    else:
        lines.append("Nothing was verified.")
    if summary.measured:
        lines.append(f"{summary.measured:,} steps keep the verdict that was measured before.")
    if summary.compiled_only:
        count = f"{summary.compiled_only:,} trajectories name no task"
        lines.append(f"{count}: only the compile level could judge them (--task names one).")
    if summary.repairs:
        lines.append(f"{len(summary.repairs)} answers had to be repaired; --json lists the repairs.")
    if summary.review:
        shown = ", ".join(f"`{name}`" for name in summary.review[:_SHOWN])
        more = f" and {len(summary.review) - _SHOWN} more" if len(summary.review) > _SHOWN else ""
        lines.append(f"To review: {shown}{more} (`regraph technique review`, `regraph technique alias`).")
    lines.extend(f"Rejected lines with reasons: {path}" for path in summary.rejected_files)
    return "\n".join(lines)
