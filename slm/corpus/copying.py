"""Samples that can only be answered by copying: real steps under new names, and lines that make no sense."""

from __future__ import annotations

from dataclasses import replace

from search import prompt
from slm.corpus import fields, preamble, real, restyle, scramble
from slm.corpus.draws import Drawer
from slm.corpus.sample import Sample, fenced


class Copier(Drawer):
    """Draws steps of the train split, and alters samples alike before and after."""

    def from_life(self) -> Sample | None:
        """A step of the benchmark's train split under new names, or None where there is none that fits."""
        rng, pool = self.rng, real.steps()
        if not pool:
            return None
        task, method, detail, before, after = rng.choices(pool, real.weights())[0]
        if rng.random() < 0.5:
            fresh, most = self.pieces or ("v", "w"), rng.choice((1, 3, 9))
            before, after = scramble.scrambled(rng, before, after, fresh, operators=False, most=most)
        if rng.random() < 0.25:
            before, after = preamble.added(rng, before, after, self.pieces or ("v", "w"))
        before, after = self.altered(before, after, rng.choice((0.2, 0.6, 0.95)), rng.choice((0, 0, 1, 2, 3)))
        if rng.random() < 0.4:
            before, after = restyle.restyled(rng, before, after)
        example = ("", "")
        if rng.random() < 0.75:
            others = [s for s in pool if s[0] != task]
            alike = [s for s in others if set(s[1].lower().split()) & set(method.lower().split())]
            chosen = rng.choice(alike or others) if rng.random() < 0.85 else rng.choice(others)
            example = self.altered(chosen[3], chosen[4], rng.choice((0.0, 0.3, 0.9)), rng.choice((0, 0, 1)))
            if sum(map(len, (*example, before, after))) > 7600:
                return None
        text = prompt.rewrite(
            method,
            detail,
            before,
            before=example[0],
            after=example[1],
            feedback=fields.feedback(self.rng, self.pieces, 0.05),
        )
        return Sample(
            text,
            fenced(after),
            "life",
            task,
            method,
            "right" if example[0] else "none",
            "",
            before,
            after,
            task,
            (),
            (),
            (),
            True,
        )

    def altered(self, before: str, after: str, share: float, lines: int) -> tuple[str, str]:
        fresh = self.pieces or ("v", "w")
        for _ in range(lines):
            before, after = real.with_extra_line(self.rng, before, after, fresh)
        return real.renamed(self.rng, before, after, fresh, share) if share else (before, after)

    def marred(self, sample: Sample) -> Sample:
        """The same sample with statements that make no sense and names that no list holds, alike in both codes."""
        before, after = sample.before, sample.after
        if self.rng.random() < 0.75:
            # where a kernel reduces, the operator of one line decides what others say
            operators = sample.family in ("nest", "contraction", "loose", "scatter") or (
                sample.manner == "work" and sample.technique not in ("smem", "warp", "regtile", "tile")
            )
            most = self.rng.choice((1, 2, 4, 9, 30))
            before, after = scramble.scrambled(
                self.rng, before, after, self.pieces or ("v", "w"), operators=operators, most=most
            )
        if self.rng.random() < 0.25:
            before, after = preamble.added(self.rng, before, after, self.pieces or ("v", "w"))
        before, after = self.altered(
            before, after, self.rng.choice((0.0, 0.3, 0.9)), self.rng.choice((0, 0, 1, 1, 2, 3))
        )
        if before == sample.before:
            return sample
        given = f"## Code\n```cuda\n{sample.before.strip(chr(10))}\n```"
        if given not in sample.prompt:
            return sample
        text = sample.prompt.replace(given, f"## Code\n```cuda\n{before.strip(chr(10))}\n```")
        return replace(sample, prompt=text, answer=fenced(after), before=before, after=after, marred=True)
