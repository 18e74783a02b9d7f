"""Fits a profile's constants to measured kernels: random steps from the start values, which a penalty holds on to."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from verify.model.formula import memset_terms, terms
from verify.model.launches import Counted
from verify.model.profiles import Constants, Profile

_STEPS = 3000
_MOST_LAUNCHES = 16  #: of one call that a fit looks at; of more, every so many-th stands for its neighbours
_PENALTY = 0.03
_LARGEST_POWER, _LEAST_POWER = 8.0, 1.2
#: Not fitted: it follows from the cache's size, and a memset's launch is measured with the kernels.
_FIXED = frozenset(("l2_share", "memset"))


@dataclass(frozen=True)
class Measured:
    """A kernel's counts and its measured time."""

    family: str
    name: str
    counted: Counted
    seconds: float


def modelled_seconds(counted: Counted, profile: Profile) -> float:
    """The time of one call."""
    total = sum(terms(launch, profile).microseconds for launch in counted.launches)
    return 1e-6 * (total + sum(memset_terms(nbytes, profile).microseconds for nbytes in counted.memsets))


def loss(samples: Sequence[Measured], profile: Profile) -> float:
    """Mean absolute log ratio, with a small quadratic part so that the worst ones are seen."""
    errors = [math.log(modelled_seconds(sample.counted, profile) / sample.seconds) for sample in samples]
    return sum(min(abs(error), 1.5) + 0.2 * error * error for error in errors) / len(errors)


def fit(samples: Sequence[Measured], start: Profile, seed: int = 1, steps: int = _STEPS) -> Profile:
    """``start`` with constants that fit ``samples`` better; the same for the same arguments."""
    chance = random.Random(seed)
    names = [field.name for field in fields(Constants) if field.name not in _FIXED]
    thinned = [_thinned(sample) for sample in samples]
    best = start

    def value(profile: Profile) -> float:
        drift = sum(math.log(getattr(profile.constants, name) / getattr(start.constants, name)) ** 2 for name in names)
        return loss(thinned, profile) + _PENALTY * drift

    least = value(best)
    for step in range(steps):
        width = 0.25 if step < steps / 2 else 0.08
        chosen = chance.sample(names, chance.choice((1, 1, 2, 3)))
        changed = {name: getattr(best.constants, name) * math.exp(chance.gauss(0, width)) for name in chosen}
        if "power" in changed:
            changed["power"] = min(max(changed["power"], _LEAST_POWER), _LARGEST_POWER)
        tried = replace(best, constants=replace(best.constants, **changed))
        now = value(tried)
        if now < least:
            best, least = tried, now
    return best


def held_out_seconds(samples: Sequence[Measured], start: Profile, parts: int, seed: int = 1) -> list[float]:
    """The modelled seconds of every sample by a fit that had not seen its task: one fit for each of ``parts``."""
    families = sorted({sample.family for sample in samples})
    fits = [fit([s for s in samples if families.index(s.family) % parts != part], start, seed) for part in range(parts)]
    return [modelled_seconds(s.counted, fits[families.index(s.family) % parts]) for s in samples]


def _thinned(sample: Measured) -> Measured:
    """``sample`` with few of its launches, and their share of the measured time."""
    launches = sample.counted.launches
    if len(launches) <= _MOST_LAUNCHES:
        return sample
    step = len(launches) / _MOST_LAUNCHES
    kept = [launches[int((index + 0.5) * step)] for index in range(_MOST_LAUNCHES)]
    memsets = sample.counted.memsets[:: max(1, round(step))]
    return replace(
        sample, counted=replace(sample.counted, launches=kept, memsets=memsets), seconds=sample.seconds / step
    )
