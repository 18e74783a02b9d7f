"""From two programs to one training text: prompt and answer, in the words of ``search/prompts/``."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from search import prompt
from slm.corpus import techniques as words
from slm.corpus.counting import Histogram, Scatter, TwoPass
from slm.corpus.family import Family, State
from slm.corpus.idioms import DIRECT, IDIOMS, Idiom, canonical, draw
from slm.corpus.nests import Contraction, Nest
from slm.corpus.reductions import Reduction, Rows
from slm.corpus.tiles import Product, Stencil, Transposition

FAMILIES: dict[type[Family], int] = {
    Nest: 26, Contraction: 26, Reduction: 14, Rows: 14, Product: 8, Transposition: 4, Stencil: 5, Histogram: 4, TwoPass: 4, Scatter: 3,
}  # fmt: skip
# Pairs that training never shows, for the evaluation's set of unseen pairs.
HELD_OUT: frozenset[tuple[str, str]] = frozenset((
    ("reduction", "vec"), ("rows", "fast"), ("contraction", "ldg"), ("stencil", "bounds"), ("transposition", "restrict"), ("histogram", "gridstride"),
    ("product", "unroll"), ("twopass", "block"), ("scatter", "coarsen"), ("nest", "fma"),
))  # fmt: skip
RECIPES: dict[str, tuple[str, ...]] = {
    "nest": ("parallel", "vec", "restrict"),
    "contraction": ("parallel", "restrict", "unroll"),
    "reduction": ("warp", "gridstride", "restrict"),
    "rows": ("warp", "restrict"),
    "product": ("tile", "unroll", "restrict"),
    "transposition": ("tile", "pad", "restrict"),
    "stencil": ("parallel", "restrict"),
    "histogram": ("private", "gridstride"),
    "twopass": ("fuse", "restrict"),
    "scatter": ("parallel", "restrict"),
}
# How often a technique is the one to learn, where the draw does not leave it to the families.
SHARES = {
    "parallel": 16, "gridstride": 6, "block": 3, "restrict": 3, "ldg": 4, "vec": 9, "coarsen": 6, "unroll": 5, "fast": 4, "fma": 4, "bounds": 3,
    "smem": 7, "warp": 8, "tile": 8, "pad": 4, "regtile": 5, "private": 4, "fuse": 4,
}  # fmt: skip
TECHNIQUES = tuple(IDIOMS)
# Where a technique that few families take is to be looked for.
PLACES: dict[str, tuple[type[Family], ...]] = {
    "tile": (Product, Transposition, Stencil), "pad": (Product, Transposition, Stencil), "regtile": (Product,), "private": (Histogram,),
    "fuse": (TwoPass,), "smem": (Reduction, Rows), "warp": (Reduction, Rows), "vec": (Nest, Nest, Reduction),
}  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """One text of the corpus, and what a judge needs to know about it."""

    prompt: str
    answer: str
    form: str  # rewrite | standard | cot | fsr | refuse
    family: str
    technique: str
    example: str  # right | none | other
    sequential: str
    before: str
    after: str  # "" where the answer is `suitable: no`
    function: str
    arguments: tuple[tuple[str, str, str, str, str], ...]
    dims: tuple[tuple[str, int], ...]
    idiom: tuple[tuple[str, str], ...]


def fenced(code: str) -> str:
    body = code.strip("\n")
    return f"suitable: yes\n```cuda\n{body}\n```\n"


REFUSED = "suitable: no\n"


class Maker:
    """Draws samples; ``pieces`` are the words from which names are invented."""

    def __init__(
        self, rng: random.Random, pieces: Sequence[str], *, held_out: bool = False, families: dict[type[Family], int] | None = None,
    ) -> None:  # fmt: skip
        self.rng = rng
        self.pieces = pieces
        self.held_out = held_out  # whether pairs of HELD_OUT may be drawn as the step to learn
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

    def step(self, technique: str = "", family_name: str = "", first: bool | None = None) -> tuple[Family, State, str]:
        """A family, a state, and a technique that applies there; ``first``: the state is the sequential code."""
        rng = self.rng
        while True:
            places = PLACES.get(technique)
            family = rng.choice(places)(rng, self.pieces) if places else self.family()
            if family_name and family.name != family_name:
                continue
            steps = rng.choice((0, 0, 1, 1, 1, 2, 2, 3))
            if first is True or technique == "parallel":
                steps = 0
            elif first is False or (technique and technique not in DIRECT):
                steps = max(steps, 1)
            state = self.state(family, steps, "tile" if technique in ("pad", "regtile") else "") if steps else {}
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

    def pair(self) -> Sample:
        """One technique applied to one code: the general prompt."""
        rng = self.rng
        wanted = rng.choices(tuple(SHARES), tuple(SHARES.values()))[0] if rng.random() < 0.6 else ""
        family, state, technique = self.step(wanted)
        roll = rng.random()
        which = "right" if roll < 0.74 else "none" if roll < 0.94 else "other"
        explicit = rng.random() < 0.5
        idiom = self.idiom(technique, first=not state)
        own = canonical(technique)
        if not state and technique != "parallel":
            own["parallel"] = canonical("parallel")
        if which != "right":
            idiom = dict(own)
            if explicit:
                for key in ("block", "factor", "cap", "size", "by", "op"):
                    if key in idiom and rng.random() < 0.6:
                        idiom[key] = rng.choice(IDIOMS[technique][key])
                if "block2" in idiom:
                    idiom["block2"] = rng.choice(IDIOMS[technique]["block2"])
        new = family.apply(state, technique, idiom)
        if new is None:
            return self.pair()
        planar = family.planar_state(new).startswith("grid")
        before, after = family.render(state), family.render(new)
        if before == after:
            return self.pair()
        example_before = example_after = ""
        if which == "right":
            found = self.example(family, state, technique, idiom)
            if found is None:
                return self.pair()
            example_before, example_after = found
        elif which == "other":
            other, other_state, other_technique = self.step()
            changed = other.apply(other_state, other_technique, self.idiom(other_technique, first=not other_state))
            if changed is None or other_technique == technique:
                return self.pair()
            example_before, example_after = other.render(other_state), other.render(changed)
        if which == "other":
            explicit_now = False if idiom == own else explicit
        else:
            explicit_now = explicit
        if which != "right" and idiom != own:
            # the words must say what differs from the model's own idiom
            name, detail = words.name_of(rng, technique), self.saying(technique, idiom, own, planar)
            if not detail:
                return self.pair()
        else:
            name = words.name_of(rng, technique)
            detail = words.detail_of(rng, technique, idiom, explicit=explicit_now, planar=planar)
        if which == "right" and rng.random() < 0.16:
            name = rng.choice(words.VAGUE_NAMES).format(n=rng.randint(1, 99), letter=rng.choice("ABCDEFGH"))
            if rng.random() < 0.8:
                detail = rng.choice(words.VAGUE_DETAILS)
        elif which == "right" and rng.random() < 0.12:
            name, detail = self.twisted(name), ""
        text = prompt.rewrite(name, detail, before, before=example_before, after=example_after, feedback=self.feedback(0.08))
        return self.sample(family, text, fenced(after), "rewrite", technique, which, state, new, idiom)

    def asked(
        self, family: Family, state: State, technique: str, which: str, idiom: Idiom | None = None, *, vague: bool = False
    ) -> Sample | None:
        """The general prompt for one chosen step, or None where the step or its example cannot be made."""
        idiom = idiom or self.idiom(technique, first=not state)
        new = family.apply(state, technique, idiom)
        if new is None or family.render(state) == family.render(new):
            return None
        if which == "right":
            found = self.example(family, state, technique, idiom)
        else:
            other, other_state, other_technique = self.step()
            changed = other.apply(other_state, other_technique, self.idiom(other_technique, first=not other_state))
            found = (other.render(other_state), other.render(changed)) if changed and other_technique != technique else None
        if found is None:
            return None
        name = words.name_of(self.rng, technique)
        detail = self.rng.choice(words.VAGUE_DETAILS) if vague else words.detail_of(self.rng, technique, idiom, explicit=False)
        text = prompt.rewrite(name, detail, family.render(state), before=found[0], after=found[1])
        return self.sample(family, text, fenced(family.render(new)), "rewrite", technique, which, state, new, idiom)

    def twisted(self, name: str) -> str:
        """A name that a person would make up from parts of the usual one."""
        extra = self.rng.choice(("with a twist", "again", "(variant)", "for this kernel", "pass", "v2", "on the GPU", "of the inner loop"))
        return f"{name} {extra}"

    def saying(self, technique: str, idiom: Idiom, own: Idiom, planar: bool) -> str:
        """A detail that names every field in which ``idiom`` differs from ``own``, or "" where none does."""
        differs = {k for k in idiom if idiom[k] != own[k] and k != "parallel" and k != ("block" if planar else "block2")}
        shown = {"block2": "block"}
        for _ in range(12):
            template = self.rng.choice(words.DETAILS[technique])
            if all("{" + shown.get(k, k) + "}" in template for k in differs):
                fields = dict(idiom)
                if planar and "block2" in fields:
                    fields["block"] = "{}x{}".format(*fields["block2"])
                return template.format(**fields)
        return ""

    def example(self, family: Family, state: State, technique: str, idiom: Idiom) -> tuple[str, str] | None:
        """The same technique in the same idiom on another kernel."""
        wanted = family.apply(state, technique, idiom)
        assert wanted is not None
        form = family.planar_state(wanted)
        alike = technique in ("parallel", "block", "coarsen") or not state
        same = family.name if technique in ("smem", "warp") or (technique == "coarsen" and family.name == "transposition") else ""
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

    def refuse(self) -> Sample:
        """A technique that this code cannot take: done already, or without a place to stand."""
        rng = self.rng
        while True:
            family = self.family()
            state = self.state(family, rng.choice((0, 1, 1, 2, 3)))
            if not state:
                options = sorted((family.hopeless - {"parallel"}) | {"bounds", "block", "pad"})
            else:
                done = set(state) & {"restrict", "ldg", "bounds", "gridstride", "vec", "fast", "tile", "pad", "private", "fuse", "warp"}
                options = sorted((family.hopeless | done | {"parallel"}) - (family.techniques(state) - done))
                code = family.render(state)
                if not any(f in code for f in ("expf(", "logf(", "sinf(", "cosf(", "__")) or family.kind != "float":
                    options.append("fast")
                if "for (" not in code:
                    options.append("unroll")
                if "*" not in code.split("{", 1)[-1].replace("blockIdx.x * blockDim", ""):
                    options.append("fma")
            if not options:
                continue
            technique = rng.choice(options)
            break
        idiom = self.idiom(technique, first=not state)
        before_example = after_example = ""
        if rng.random() < 0.75:
            for _ in range(20):
                other, other_state, _ = self.step(technique)
                new = other.apply(other_state, technique, idiom)
                if new is not None and len(other.render(new)) < 2600:
                    before_example, after_example = other.render(other_state), other.render(new)
                    break
        name = words.name_of(rng, technique)
        detail = words.detail_of(rng, technique, idiom, explicit=rng.random() < 0.5)
        text = prompt.rewrite(name, detail, family.render(state), before=before_example, after=after_example, feedback=self.feedback(0.05))
        return self.sample(family, text, REFUSED, "refuse", technique, "right" if before_example else "none", state, None, idiom)

    def recipe(self, family: Family, state: State, *, own: bool) -> tuple[State, list[str]]:
        """The family's usual path from ``state``, in the model's own or a random idiom."""
        done: list[str] = []
        for technique in RECIPES[family.name]:
            first = not state
            idiom = canonical(technique) if own else draw(self.rng, technique)
            if first and technique != "parallel":
                idiom["parallel"] = canonical("parallel") if own else draw(self.rng, "parallel")
            new = family.apply(state, technique, idiom)
            if new is None and first:
                for other in ("parallel", "smem"):
                    new = family.apply(state, other, canonical(other))
                    if new:
                        state, _ = new, done.append(other)
                        break
                new = family.apply(state, technique, idiom) if technique not in ("parallel", "smem") else None
            if new:
                state = new
                done.append(technique)
        return state, done

    def whole(self) -> Sample:
        """One shot, chain of thought, FSR: several techniques in one answer."""
        rng = self.rng
        form = rng.choice(("standard", "cot", "fsr", "fsr"))
        family = self.family()
        state = self.state(family, rng.choice((0, 0, 0, 1, 2)) if form == "fsr" else rng.choice((0, 0, 0, 0, 1)))
        new, done = self.recipe(family, state, own=True)
        if not done:
            if form != "fsr":
                return self.whole()
            changed = family.apply(state, "block", canonical("block")) or family.apply(state, "bounds", canonical("bounds"))
            if changed is None:
                return self.whole()
            new = changed
        before, after = family.render(state), family.render(new)
        if before == after:
            return self.whole()
        feedback = self.feedback(0.4 if form == "fsr" else 0.1)
        answer = fenced(after)
        if form == "standard":
            example_before = example_after = ""
            if rng.random() < 0.5:
                other = self.family()
                other_new, _ = self.recipe(other, {}, own=rng.random() < 0.5)
                if other_new:
                    example_before, example_after = other.render({}), other.render(other_new)
            text = prompt.standard(before, before=example_before, after=example_after, feedback=feedback)
        elif form == "cot":
            text = prompt.cot(before, feedback=feedback)
            answer = "".join(f"{words.NAMES[t][0]}\n" for t in done) + answer
        else:
            text = prompt.fsr(before, self.task_text(family), self.gpu_text(), feedback=feedback)
        return self.sample(family, text, answer, form, "+".join(done), "none", state, new, {})

    def draw(self) -> Sample:
        roll = self.rng.random()
        if roll < 0.13:
            return self.refuse()
        if roll < 0.28:
            return self.whole()
        return self.pair()

    # -- the other fields of a prompt
    def feedback(self, share: float) -> str:
        rng = self.rng
        if rng.random() > share:
            return ""
        name = rng.choice(self.pieces or ("x",))
        line = rng.randint(3, 60)
        return rng.choice((
            f'candidate.cu({line}): error: identifier "{name}" is undefined', f"candidate.cu:{line}:{rng.randint(1, 60)}: error: expected ';' before '{name}'",
            f"compile_error: candidate.cu({line}): error: expected a \")\"", f"wrong_result: {name}[{rng.randint(0, 9999)}] is {rng.uniform(-9, 9):.4g}, expected {rng.uniform(-9, 9):.4g}",
            "runtime_error: an illegal memory access was encountered", "timeout: the candidate ran longer than its limit", "nondeterministic: two runs differ",
            f"passed, {rng.uniform(0.5, 300):.3g} times the sequential code's speed", f"passed in {rng.uniform(0.01, 20):.3g} ms",
            f'error: calling a __host__ function("std::max<float>") from a __global__ function("{name}") is not allowed',
            f"no instance of overloaded function matches the argument list, line {line}", "suitable: yes was missing",
        ))  # fmt: skip

    def task_text(self, family: Family) -> str:
        rng = self.rng
        title = " ".join(family.function.split("_"))
        return rng.choice((title, f"{title} over {rng.choice(('all elements', 'every row', 'a matrix', 'the array'))}", f"Write {family.function}: {title}.", f"{family.function}({family.signature()})"))

    def gpu_text(self) -> str:
        rng = self.rng
        name, capability, units, memory, bandwidth = rng.choice((
            ("NVIDIA H200", "9.0", 132, 228, 4800), ("NVIDIA A100-SXM4-80GB", "8.0", 108, 164, 2039), ("NVIDIA GeForce RTX 3090 Ti", "8.6", 84, 100, 1008),
            ("NVIDIA GeForce GTX 1660 SUPER", "7.5", 22, 64, 336), ("NVIDIA L4", "8.9", 58, 100, 300), ("Tesla T4", "7.5", 40, 64, 320),
        ))  # fmt: skip
        return rng.choice((
            f"{name}, compute capability {capability}, {units} SMs, {memory} KiB shared memory per SM, warp size 32, {bandwidth} GB/s",
            f"{name}\ncompute capability {capability}\n{units} SMs\nwarp size 32\nshared memory {memory} KiB\nmemory bandwidth {bandwidth} GB/s",
            f"name: {name}; compute capability: {capability}; SMs: {units}; bandwidth: {bandwidth} GB/s",
        ))  # fmt: skip

    def sample(
        self, family: Family, text: str, answer: str, form: str, technique: str, example: str, state: State, new: State | None, idiom: Idiom,
    ) -> Sample:  # fmt: skip
        return Sample(
            prompt=text, answer=answer, form=form, family=family.name, technique=technique, example=example, sequential=family.render({}),
            before=family.render(state), after=family.render(new) if new else "", function=family.function,
            arguments=tuple((a.kind, a.type, a.name, a.size, a.values) for a in family.arguments), dims=tuple(family.dims.items()),
            idiom=tuple((k, str(v)) for k, v in idiom.items() if k != "parallel"),
        )  # fmt: skip
