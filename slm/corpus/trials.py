"""Fresh samples for a measurement: seen families, held-out pairs, held-out families, refusals."""

from __future__ import annotations

import random
from collections.abc import Sequence

from slm.corpus.draws import HELD_OUT
from slm.corpus.sample import Sample
from slm.corpus.samples import Maker
from slm.corpus.unseen import UNSEEN

TRIALS = ("seen", "pairs", "families", "refuse")
LONGEST = 8200  # characters of a prompt: what leaves room for an answer


def trials(name: str, count: int, seed: str, words: Sequence[str]) -> list[Sample]:
    """``count`` samples of the trial ``name``, the same for the same seed; pairs and families come in equal parts."""
    rng = random.Random(f"{seed} {name}")
    maker = Maker(rng, words, held_out=name in ("pairs", "families"))
    pairs = sorted(HELD_OUT)
    found: list[Sample] = []
    while len(found) < count:
        sample: Sample | None
        if name == "pairs":
            family, technique = pairs[len(found) % len(pairs)]
            sample = _of_pair(maker, family, technique)
        elif name == "families":
            sample = _unseen(maker, UNSEEN[len(found) % len(UNSEEN)])
        elif name == "refuse":
            sample = maker.refuse()
        else:
            sample = maker.pair()
        if sample is not None and len(sample.prompt) < LONGEST:
            found.append(sample)
    return found


def _of_pair(maker: Maker, family_name: str, technique: str) -> Sample | None:
    family, state, _ = maker.step(technique, family_name)
    return maker.asked(family, state, technique, "right")


def _unseen(maker: Maker, family: type) -> Sample | None:
    """A step on a program of an unseen family, with an example from a seen one."""
    rng = maker.rng
    program = family(rng, maker.pieces)
    state = maker.state(program, rng.choice((0, 0, 1, 1, 2)))
    options = sorted(program.techniques(state)) if state else ["parallel", "parallel", "gridstride"]
    return maker.asked(program, state, rng.choice(options), "right") if options else None
