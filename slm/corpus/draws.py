"""Drawing programs, states and steps at random."""

from __future__ import annotations

import random
from collections.abc import Sequence

from slm.corpus.contractions import Contraction
from slm.corpus.counting import Histogram, Scatter, TwoPass
from slm.corpus.deposits import Deposit
from slm.corpus.family import Family, State
from slm.corpus.gathers import Gather
from slm.corpus.heads import Heads
from slm.corpus.idioms import DIRECT, Idiom, draw
from slm.corpus.loose import Loose
from slm.corpus.maps import Map
from slm.corpus.packed import Packed
from slm.corpus.pairs import Pairs
from slm.corpus.picks import Pick
from slm.corpus.products import Product
from slm.corpus.reductions import Reduction
from slm.corpus.rowwise import Rows
from slm.corpus.staged import Staged
from slm.corpus.stats import Stats
from slm.corpus.sweeps import Sweep
from slm.corpus.tiles import Stencil, Transposition
from slm.corpus.windows import Window

FAMILIES: dict[type[Family], int] = {
    Map: 20,
    Contraction: 22,
    Loose: 26,
    Reduction: 14,
    Rows: 14,
    Product: 8,
    Transposition: 4,
    Stencil: 5,
    Histogram: 4,
    TwoPass: 4,
    Scatter: 3,
    Window: 14,
    Gather: 12,
    Pairs: 9,
    Stats: 10,
    Heads: 9,
    Sweep: 10,
    Packed: 10,
    Deposit: 8,
    Staged: 8,
    Pick: 4,
}


# Pairs that training never shows, for the evaluation's set of unseen pairs.
HELD_OUT: frozenset[tuple[str, str]] = frozenset(
    (
        ("reduction", "vec"),
        ("rows", "fast"),
        ("contraction", "ldg"),
        ("stencil", "bounds"),
        ("transposition", "restrict"),
        ("histogram", "gridstride"),
        ("product", "unroll"),
        ("twopass", "block"),
        ("scatter", "coarsen"),
        ("nest", "fma"),
    )
)


# Where a technique that few families take is to be looked for.
PLACES: dict[str, tuple[type[Family], ...]] = {
    "tile": (Product, Product, Transposition, Stencil, Window, Pairs),
    "pad": (Product, Transposition, Stencil),
    "regtile": (Product, Product, Window, Pairs, Heads),
    "private": (Histogram, Deposit),
    "fuse": (TwoPass,),
    "smem": (Reduction, Rows, Stats, Window, Pairs, Heads, Pick),
    "warp": (Reduction, Rows, Stats, Window, Pairs, Heads, Pick),
    "vec": (Map, Map, Map, Loose, Histogram, Histogram, Reduction),
}


class Drawer:
    """Draws families and their states; ``pieces`` are the words from which names are invented."""

    def __init__(
        self,
        rng: random.Random,
        pieces: Sequence[str],
        *,
        held_out: bool = False,
        families: dict[type[Family], int] | None = None,
        marred: float = 0.6,
    ) -> None:
        self.rng = rng
        self.pieces = pieces
        self.held_out = held_out  # whether pairs of HELD_OUT may be drawn as the step to learn
        self.share_marred = marred  # of the general prompts, where nothing speaks against it
        chosen = families or FAMILIES
        self.families = list(chosen)
        self.weights = list(chosen.values())

    def family(self) -> Family:
        return self.rng.choices(self.families, self.weights)[0](self.rng, self.pieces)

    def idiom(self, technique: str, *, first: bool) -> Idiom:
        idiom = draw(self.rng, technique)
        if first and technique != "parallel":
            idiom["parallel"] = draw(self.rng, "parallel")
        return idiom

    def unusual(self, idiom: Idiom) -> Idiom:
        """Names that no list holds for an idiom's own variables, in code that is given and not to be written."""
        result = dict(idiom)
        maker = self.rng.choice(self.pieces or ("v",))
        if "words" in result and self.rng.random() < 0.3:
            result["words"] = (f"{maker}_t", f"{maker}_b")
        if "memset" in result and self.rng.random() < 0.3:
            result["memset"] = "cudaMemsetAsync"
        if "kernel" in result and self.rng.random() < 0.4:
            result["kernel"] = self.rng.choice((f"{maker}_{{}}", f"{{}}_{maker}", f"{maker}_kern", f"{maker}Kernel"))
        return result

    def state(self, family: Family, steps: int, start: str = "") -> State:
        """A state after ``steps`` random techniques, the first of them ``start`` where it is given."""
        state: State = {}
        for k in range(steps):
            if not state:
                options = [start] if start else ["parallel"] * 3 + ["smem", "gridstride", "warp", "tile"]
            else:
                options = sorted(family.techniques(state))
            if not options:
                break
            technique = self.rng.choice(options)
            new = family.apply(state, technique, self.unusual(self.idiom(technique, first=k == 0)))
            state = new or state
        return state

    def start(self, family: Family, technique: str) -> str:
        """The first technique of a state that ``technique`` needs, or "" where any does."""
        needs_tile = technique == "pad" or (technique == "regtile" and family.name == "product")
        return (
            "tile" if needs_tile else "parallel" if technique in ("regtile", "tile") and family.manner == "work" else ""
        )

    def step(self, technique: str = "", family_name: str = "", first: bool | None = None) -> tuple[Family, State, str]:
        """A family, a state, and a technique that applies there; ``first``: the state is the sequential code."""
        rng = self.rng
        tries = 0
        first_place = rng.choice(PLACES[technique]) if technique in PLACES else None
        while True:
            # one place is looked at for a while, so that those where the technique seldom fits have their share too
            tries += 1
            places = (first_place,) if first_place and tries < 25 and not family_name else PLACES.get(technique)
            if family_name:
                chosen_from = places or tuple(self.families)
                places = tuple(f for f in chosen_from if family_name in (f.name, f.manner)) or places
            family = rng.choice(places)(rng, self.pieces) if places else self.family()
            if family_name and family_name not in (family.name, family.manner):
                continue
            steps = rng.choice((0, 0, 1, 1, 1, 2, 2, 3))
            if first is True or technique == "parallel":
                steps = 0
            elif first is False or (technique and technique not in DIRECT):
                steps = max(steps, 1)
            state = self.state(family, steps, self.start(family, technique)) if steps else {}
            if first is not None and bool(state) == first:
                continue
            if not state:
                options = ["parallel"] * 8 + sorted(DIRECT)
            else:
                options = sorted(family.techniques(state))
            if technique:
                options = [t for t in options if t == technique]
            if not self.held_out:
                options = [t for t in options if (family.name, t) not in HELD_OUT]
            if not options:
                continue
            chosen = rng.choice(options)
            if chosen in ("block", "restrict", "ldg", "bounds") and not technique and rng.random() < 0.4:
                continue
            if family.apply(state, chosen, self.idiom(chosen, first=not state)) is None:
                continue
            return family, state, chosen

    def example(self, family: Family, state: State, technique: str, idiom: Idiom) -> tuple[str, str] | None:
        """The same technique in the same idiom on another kernel."""
        wanted = family.apply(state, technique, idiom)
        assert wanted is not None
        form = family.planar_state(wanted)
        alike = technique in ("parallel", "block", "coarsen") or not state
        same = family.alike(technique)
        for _ in range(16):
            other, other_state, _ = self.step(technique, same, first=not state)
            new = other.apply(other_state, technique, idiom)
            if new is None or other.function == family.function or (alike and other.planar_state(new) != form):
                continue
            if technique == "coarsen" and other.name == "transposition" and not same:
                continue
            before, after = other.render(other_state), other.render(new)
            if before != after and len(before) + len(after) < 5200:
                return before, after
        return None
