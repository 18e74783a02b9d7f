"""From two programs to one training text: prompt and answer, in the words of ``search/prompts/``."""

from __future__ import annotations

from search import prompt
from slm.corpus import fields, real
from slm.corpus import techniques as words
from slm.corpus.copying import Copier
from slm.corpus.draws import HELD_OUT
from slm.corpus.family import Family, State
from slm.corpus.idioms import IDIOMS, Idiom, canonical, draw
from slm.corpus.sample import REFUSED, Sample, fenced

RECIPES: dict[str, tuple[str, ...]] = {
    "nest": ("parallel", "vec", "restrict"),
    "contraction": ("parallel", "restrict", "unroll"),
    "loose": ("parallel", "restrict"),
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
    "parallel": 16,
    "gridstride": 6,
    "block": 3,
    "restrict": 3,
    "ldg": 4,
    "vec": 9,
    "coarsen": 6,
    "unroll": 5,
    "fast": 4,
    "fma": 4,
    "bounds": 3,
    "smem": 7,
    "warp": 8,
    "tile": 8,
    "pad": 4,
    "regtile": 5,
    "private": 4,
    "fuse": 4,
}
TECHNIQUES = tuple(IDIOMS)


class Maker(Copier):
    """Draws samples; ``pieces`` are the words from which names are invented."""

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
            name = self.made_up()
            if rng.random() < 0.8:
                detail = rng.choice(words.VAGUE_DETAILS)
        elif which == "right" and rng.random() < 0.12:
            name, detail = self.twisted(name), ""
        if rng.random() < 0.25 and real.remarks():
            detail = self.talkative(detail)
        text = prompt.rewrite(
            name,
            detail,
            before,
            before=example_before,
            after=example_after,
            feedback=fields.feedback(self.rng, self.pieces, 0.08),
        )
        return self.sample(family, text, fenced(after), "rewrite", technique, which, state, new, idiom)

    def asked(
        self,
        family: Family,
        state: State,
        technique: str,
        which: str,
        idiom: Idiom | None = None,
        *,
        vague: bool = False,
    ) -> Sample | None:
        """The general prompt for one chosen step, ``vague`` under a made-up name; None where the step or its example
        cannot be made."""
        idiom = idiom or self.idiom(technique, first=not state)
        new = family.apply(state, technique, idiom)
        if new is None or family.render(state) == family.render(new):
            return None
        if which == "right":
            found = self.example(family, state, technique, idiom)
        else:
            other, other_state, other_technique = self.step()
            changed = other.apply(other_state, other_technique, self.idiom(other_technique, first=not other_state))
            found = (
                (other.render(other_state), other.render(changed)) if changed and other_technique != technique else None
            )
        if found is None:
            return None
        if vague:
            name, detail = self.made_up(), self.rng.choice(words.VAGUE_DETAILS)
        else:
            name = words.name_of(self.rng, technique)
            detail = words.detail_of(self.rng, technique, idiom, explicit=False)
        text = prompt.rewrite(name, detail, family.render(state), before=found[0], after=found[1])
        return self.sample(family, text, fenced(family.render(new)), "rewrite", technique, which, state, new, idiom)

    def as_in_life(self) -> Sample | None:
        """A sequential program made parallel in the manner of a step of the train split, which is the example."""
        rng, pool = self.rng, real.first_steps()
        if not pool:
            return None
        method, detail, before, after, idiom = rng.choice(pool)
        family, state, _ = self.step("parallel", first=True)
        new = family.apply(state, "parallel", idiom)
        if new is None or family.planar_state(new) != ("line" if idiom["flat"] else "grid2"):
            return None
        example = self.altered(before, after, rng.choice((0.0, 0.0, 0.3, 0.9)), rng.choice((0, 0, 1)))
        if rng.random() < 0.5:
            method = words.name_of(rng, "parallel")
            detail = words.detail_of(rng, "parallel", idiom, explicit=False, planar=not idiom["flat"])
        if rng.random() < 0.25:
            detail = self.talkative(detail)
        text = prompt.rewrite(method, detail, family.render(state), before=example[0], after=example[1])
        answer = fenced(family.render(new))
        if len(text) + len(answer) > 9000:
            return None
        return self.sample(family, text, answer, "rewrite", "parallel", "right", state, new, idiom)

    def talkative(self, detail: str) -> str:
        """``detail`` among remarks that have nothing to do with it, as real steps have them."""
        said = [detail] if detail else []
        for remark in self.rng.sample(real.remarks(), self.rng.choice((1, 1, 2))):
            said.insert(self.rng.randint(0, len(said)), remark)
        return " ".join(part if part.endswith((".", ";", ":")) else part + "." for part in said)

    def made_up(self) -> str:
        """A name that says nothing: only the example tells what is wanted."""
        rng = self.rng
        return rng.choice(words.VAGUE_NAMES).format(n=rng.randint(1, 99), letter=rng.choice("ABCDEFGH"))

    def twisted(self, name: str) -> str:
        """A name that a person would make up from parts of the usual one."""
        extra = self.rng.choice(
            ("with a twist", "again", "(variant)", "for this kernel", "pass", "v2", "on the GPU", "of the inner loop")
        )
        return f"{name} {extra}"

    def saying(self, technique: str, idiom: Idiom, own: Idiom, planar: bool) -> str:
        """A detail that names every field in which ``idiom`` differs from ``own``, or "" where none does."""
        differs = {
            k for k in idiom if idiom[k] != own[k] and k != "parallel" and k != ("block" if planar else "block2")
        }
        shown = {"block2": "block"}
        for _ in range(12):
            template = self.rng.choice(words.DETAILS[technique])
            if all("{" + shown.get(k, k) + "}" in template for k in differs):
                fields = dict(idiom)
                if planar and "block2" in fields:
                    fields["block"] = "{}x{}".format(*fields["block2"])
                return template.format(**fields)
        return ""

    def refuse(self) -> Sample:
        """A technique that this code cannot take: done already, or without a place to stand."""
        rng = self.rng
        while True:
            family = self.family()
            state = self.state(family, rng.choice((0, 1, 1, 2, 3)))
            if not state:
                options = sorted((family.hopeless - {"parallel"}) | {"bounds", "block", "pad"})
            else:
                done = set(state) & {
                    "restrict",
                    "ldg",
                    "bounds",
                    "gridstride",
                    "vec",
                    "fast",
                    "tile",
                    "pad",
                    "private",
                    "fuse",
                    "warp",
                }
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
            if (family.name, technique) in HELD_OUT:
                continue  # never asked, neither to be done nor to be refused: a refusal alone would be learnt
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
        text = prompt.rewrite(
            name,
            detail,
            family.render(state),
            before=before_example,
            after=after_example,
            feedback=fields.feedback(self.rng, self.pieces, 0.05),
        )
        return self.sample(
            family, text, REFUSED, "refuse", technique, "right" if before_example else "none", state, None, idiom
        )

    def recipe(self, family: Family, state: State, *, own: bool) -> tuple[State, list[str]]:
        """The family's usual path from ``state``, in the model's own or a random idiom."""
        done: list[str] = []
        for technique in RECIPES.get(family.name, ("parallel", "restrict")):
            first = not state
            idiom = canonical(technique) if own else draw(self.rng, technique)
            if first and technique != "parallel":
                idiom["parallel"] = canonical("parallel") if own else draw(self.rng, "parallel")
            new = family.apply(state, technique, idiom)
            if new is None and first:
                for other in ("parallel", "smem"):
                    new = family.apply(state, other, canonical(other))
                    if new:
                        state = new
                        done.append(other)
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
            changed = family.apply(state, "block", canonical("block")) or family.apply(
                state, "bounds", canonical("bounds")
            )
            if changed is None:
                return self.whole()
            new = changed
        before, after = family.render(state), family.render(new)
        if before == after:
            return self.whole()
        feedback = fields.feedback(self.rng, self.pieces, 0.4 if form == "fsr" else 0.1)
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
            text = prompt.fsr(before, fields.task_text(self.rng, family), fields.gpu_text(self.rng), feedback=feedback)
        return self.sample(family, text, answer, form, "+".join(done), "none", state, new, {})

    def draw(self) -> Sample:
        roll = self.rng.random()
        if roll < 0.07:
            return self.refuse()
        if roll < 0.17:
            return self.whole()
        if roll < 0.33:
            return self.from_life() or self.pair()
        sample = (self.as_in_life() if roll < 0.43 else None) or self.pair()
        # a vector access and a fused operation change the very lines that they are about
        if sample.technique in ("vec", "fma") or self.rng.random() >= self.share_marred:
            return sample
        return self.marred(sample)

    def sample(
        self,
        family: Family,
        text: str,
        answer: str,
        form: str,
        technique: str,
        example: str,
        state: State,
        new: State | None,
        idiom: Idiom,
    ) -> Sample:
        return Sample(
            prompt=text,
            answer=answer,
            form=form,
            family=family.name,
            technique=technique,
            example=example,
            sequential=family.render({}),
            before=family.render(state),
            after=family.render(new) if new else "",
            function=family.function,
            arguments=tuple((a.kind, a.type, a.name, a.size, a.values) for a in family.arguments),
            dims=tuple(family.dims.items()),
            idiom=tuple((k, str(v)) for k, v in idiom.items() if k != "parallel"),
            manner=family.manner,
        )
