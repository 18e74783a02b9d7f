"""How well modelled times order measured ones: tau, picks and ratio errors, by task and together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verify.model.profiles import Profile
    from verify.model.samples import Samples

#: Measured times closer than this are a tie, which no order can be wrong about.
TIE = 0.03
#: A pick is right when its measured time is within this of the best.
NEAR_BEST = 0.05


@dataclass(frozen=True)
class Pair:
    """One kernel's time as modelled and as measured, in seconds."""

    family: str
    name: str
    modelled: float
    measured: float

    @property
    def ratio_error(self) -> float:
        """How many times too slow or too fast, at least 1."""
        return math.exp(abs(math.log(self.modelled / self.measured)))


@dataclass(frozen=True)
class Row:
    """The figures of one family."""

    family: str
    kernels: int
    tau: float | None  #: Kendall's, over pairs that are no ties; ``None`` where there are none
    pairs: int
    picked: str
    pick_ratio: float  #: measured time of the pick over the best measured time
    ratio_error: float  #: median


def agreement(pairs: Sequence[Pair]) -> tuple[int, int]:
    """(concordant minus discordant, all) over the pairs of kernels whose measured times differ."""
    score = count = 0
    for index, left in enumerate(pairs):
        for right in pairs[:index]:
            if abs(math.log(left.measured / right.measured)) < TIE:
                continue
            count += 1
            product = (left.measured - right.measured) * (left.modelled - right.modelled)
            score += (product > 0) - (product < 0)
    return score, count


def row_of(family: str, pairs: Sequence[Pair]) -> Row:
    """The figures of one family's kernels."""
    score, count = agreement(pairs)
    pick = min(pairs, key=lambda pair: pair.modelled)
    best = min(pair.measured for pair in pairs)
    return Row(
        family,
        len(pairs),
        score / count if count else None,
        count,
        pick.name,
        pick.measured / best,
        median(p.ratio_error for p in pairs),
    )


@dataclass(frozen=True)
class Summary:
    """The figures of all families together."""

    tau: float | None  #: pairs within families only
    pairs: int
    kernels: int
    families: int
    picked: int  #: families whose pick is within 5 % of the best
    ratio_error: float  #: median over kernels

    def text(self) -> str:
        """In a line."""
        tau = f"{self.tau:+.3f}" if self.tau is not None else "-"
        return (
            f"tau {tau} over {self.pairs} pairs, a step within 5 % of the fastest picked in {self.picked} of "
            f"{self.families} tasks, median ratio error {self.ratio_error:.2f}"
        )


def rows_and_summary(pairs: Sequence[Pair]) -> tuple[list[Row], Summary]:
    """A row for each family, in order, and all together. ``pairs`` must not be empty."""
    families: dict[str, list[Pair]] = {}
    for pair in pairs:
        families.setdefault(pair.family, []).append(pair)
    rows = [row_of(family, members) for family, members in sorted(families.items())]
    scores = [agreement(members) for members in families.values()]
    count = sum(number for _, number in scores)
    tau = sum(score for score, _ in scores) / count if count else None
    picked = sum(row.pick_ratio <= 1 + NEAR_BEST for row in rows)
    return rows, Summary(tau, count, len(pairs), len(rows), picked, median(pair.ratio_error for pair in pairs))


def markdown(samples: Samples, profile: Profile, found: Mapping[str, tuple[list[Row], Summary]]) -> str:
    """The table for ``docs/modelled-time.md``."""
    median_seconds, slow_seconds = samples.cost_quantiles()
    lines = [
        f"{profile.title} ({profile.calibrated or 'uncalibrated'}) against steps measured on "
        f"{', '.join(sorted(samples.machines))}, {', '.join(sorted(samples.dates))}. Counting a step took "
        f"{median_seconds:.1f} s at the median and {slow_seconds:.1f} s at the 90th percentile, "
        "by the clock and beside other work.",
    ]
    for split, (rows, summary) in found.items():
        lines += ["", f"**{split} split**: {summary.text()}.", ""]
        lines += [
            "| task | steps | tau | time of the pick over the best | median ratio error |",
            "|---|---:|---:|---:|---:|",
        ]
        for row in rows:
            tau = f"{row.tau:+.2f}" if row.tau is not None else "–"
            lines.append(f"| `{row.family}` | {row.kernels} | {tau} | {row.pick_ratio:.2f} | {row.ratio_error:.2f} |")
    lines += ["", f"No model for {len(samples.skipped)} of {len(samples.measured) + len(samples.skipped)} steps:", ""]
    for reason, count in samples.refusals().items():
        steps = ", ".join(f"`{one.task}` {one.step}" for one in samples.skipped if one.kind == reason)
        lines.append(f"- {count}: {reason} ({steps})")
    return "\n".join(lines) + "\n"
