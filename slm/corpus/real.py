"""Steps of the benchmark's *train* split as they are, under new names: how people and large models write."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from slm.corpus import scramble
from slm.corpus.idioms import IDIOMS, canonical
from slm.corpus.lexicon import RESERVED

ROOT = Path(__file__).resolve().parents[2] / "cudaeval"
# Train tasks whose steps no training sees: what a choice between trainings is measured on (`slm.evaluate dev`).
DEV = frozenset(("rms_norm", "leaky_quantize_int8", "hamming_distance", "rgb_to_grayscale", "pairwise_distances"))
GRAM = 60  # words and signs in a row that two programs do not share by chance; a launch of its own has about 45
_WORD = re.compile(r"[A-Za-z_]\w*")
_FUNCTION = re.compile(r'extern "C" void (\w+)\(')
_DECLARED = re.compile(
    r"\b(?:const\s+)?(?:unsigned\s+)?(?:float4?|double|int|unsigned|size_t|long|bool|char|u?int\d+_t|void|dim3|auto)\s*[*&]*\s*(?:__restrict__\s+)?([A-Za-z_]\w*)"
)
KEEP = frozenset(
    ("x", "y", "z", "w", "main", "operator", "restrict", "const", "int", "unsigned", "long", "short", "char", "float")
) | frozenset(("double", "void", "bool", "if", "for", "while", "return"))


def grams(text: str) -> Iterator[tuple[str, ...]]:
    """All runs of ``GRAM`` words and signs."""
    tokens = re.findall(r"\w+|[^\w\s]", text)
    for k in range(len(tokens) - GRAM + 1):
        yield tuple(tokens[k : k + GRAM])


def _records(split: str) -> Iterator[tuple[str, str, list[dict[str, str]]]]:
    """(task, reference, steps) of every trajectory of the split's tasks."""
    for manifest in sorted((ROOT / "tasks").glob("*/task.toml")):
        if f'split = "{split}"' not in manifest.read_text(encoding="utf-8"):
            continue
        name = manifest.parent.name
        reference = (manifest.parent / "reference.cpp").read_text(encoding="utf-8")
        trajectory = ROOT / "trajectories" / f"{name}.jsonl"
        lines = trajectory.read_text(encoding="utf-8").splitlines() if trajectory.is_file() else ["{}"]
        for line in lines:
            yield name, reference, json.loads(line).get("steps", [])


@cache
def forbidden() -> frozenset[tuple[str, ...]]:
    """The runs of words of the test split, which no text of the corpus may hold."""
    found: set[tuple[str, ...]] = set()
    for _, reference, taken in _records("test"):
        for code in (reference, *(step["code"] for step in taken)):
            found.update(grams(code))
    return frozenset(found)


@cache
def steps() -> tuple[tuple[str, str, str, str, str], ...]:
    """(task, method, detail, before, after) of every step of a train task outside DEV that fits into a prompt and is
    free of the test split: authors repeat themselves, so a step that shares a run of words with a test task is left
    out."""
    found = []
    for name, code, taken in _records("train"):
        for step in taken:
            before, code = code, step["code"]
            if name in DEV:
                continue
            if len(before) + len(code) < 4200 and forbidden().isdisjoint((*grams(before), *grams(code))):
                found.append((name, step["method"], step["detail"], before, code))
    return tuple(found)


@cache
def weights() -> tuple[float, ...]:
    """How often each step is drawn: the more of its answer stands in its question, the more there is to learn from it;
    the rest can only be recalled."""
    found = []
    for _, _, _, before, after in steps():
        known = set(_runs(before))
        runs = list(_runs(after))
        found.append(0.25 + sum(run in known for run in runs) / max(1, len(runs)))
    return tuple(found)


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    tokens = re.findall(r"\w+|[^\w\s]", text)
    return zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False)


_LINE = re.compile(r"<<<\((\w+) \+ (\d+)\) / (\d+), (\d+)>>>")
_PLANE = re.compile(
    r"dim3 block\((\d+), (\d+)\);\n +(?:const )?dim3 grid\(\(\w+ \+ \d+\) / \d+, \(\w+ \+ \d+\) / \d+\);"
)


@cache
def first_steps() -> tuple[tuple[str, str, str, str, dict[str, Any]], ...]:
    """(method, detail, before, after, idiom) of the first steps that only spread a loop over threads, with the idiom
    of `parallel` in which they are written."""
    found = []
    for _, method, detail, before, after in steps():
        if "__global__" in before or after.count("<<<") != 1 or "atomic" in after:
            continue
        idiom = canonical("parallel")
        idiom |= {"guard": "return" if re.search(r"if \([^\n]*>=[^\n]*\) return;", after) else "if", "launch": "inline"}
        if line := _LINE.search(after):
            idiom |= {"block": int(line[4]), "flat": True}
        elif plane := _PLANE.search(after):
            idiom |= {"block2": (int(plane[1]), int(plane[2])), "flat": False, "words": ("block", "grid")}
        else:
            continue
        found.append((method, detail, before, after, idiom))
    return tuple(found)


@cache
def remarks() -> tuple[str, ...]:
    """What the authors say beside a step, in sentences that name no number, which an idiom would have to obey."""
    sentences = {s.strip() for _, _, detail, _, _ in steps() for s in re.split(r"(?<=[.;:]) ", detail)}
    return tuple(sorted(s for s in sentences if 12 < len(s) < 140 and not re.search(r"\d|unroll|restrict", s)))


def renamed(rng: random.Random, before: str, after: str, fresh: Sequence[str], share: float) -> tuple[str, str]:
    """The same new names in both texts for a share of the names that they declare."""
    shared = set(_WORD.findall(before)) & set(_WORD.findall(after))  # a name of the answer's own must be one to foresee
    declared = [n for n in dict.fromkeys(_DECLARED.findall(before)) if n in shared and n not in KEEP and n[:2] != "__"]
    taken = set(_WORD.findall(before + after))
    new: dict[str, str] = {}
    for name in declared:
        if rng.random() < share:
            for _ in range(20):
                word = rng.choice(fresh)
                if rng.random() < 0.4:
                    word = f"{word}_{rng.choice(fresh)}"
                if word not in taken and word not in KEEP and word not in RESERVED and not word[0].isdigit():
                    new[name] = word
                    taken.add(word)
                    break

    function = _FUNCTION.search(before)
    if function and (name := function[1]) in new:  # and the kernel that is called after it
        for form in IDIOMS["parallel"]["kernel"]:
            new.setdefault(form.format(name), form.format(new[name]))

    def swap(text: str) -> str:
        return _WORD.sub(lambda m: new.get(m[0], m[0]), text)

    return swap(before), swap(after)


def with_extra_line(rng: random.Random, before: str, after: str, fresh: Sequence[str]) -> tuple[str, str]:
    """The same meaningless statement after a line that both texts hold once: it can only be copied."""
    lines_a, lines_b = before.split("\n"), after.split("\n")
    bare_a, bare_b = [line.strip() for line in lines_a], [line.strip() for line in lines_b]
    places = [
        k
        for k, line in enumerate(bare_a)
        if line.endswith(";")
        and "#" not in line
        and "<<<" not in line
        and lines_a[k].startswith(" ")
        and bare_a.count(line) == 1
        and bare_b.count(line) == 1
        and not line.startswith(("dim3", "__shared__", "cuda"))
    ]
    if not places:
        return before, after
    at = rng.choice(places)
    there = bare_b.index(bare_a[at])
    known = list(dict.fromkeys(_WORD.findall(bare_a[at])))

    def word() -> str:
        roll = rng.random()
        if roll < 0.45 and known:
            return str(rng.choice(known))
        if roll < 0.8:
            return rng.choice(fresh) + (f"_{rng.choice(fresh)}" if rng.random() < 0.3 else "")
        return str(rng.randint(0, 99)) if rng.random() < 0.6 else f"{rng.randint(1, 90) / 8}f"

    def name() -> str:
        while True:
            made = rng.choice(fresh) + (f"_{rng.choice(fresh)}" if rng.random() < 0.3 else "")
            if made not in RESERVED and made not in KEEP:
                return made

    def term() -> str:
        return f"{word()} {rng.choice(rng.choice(scramble.CLASSES[:3]))} {word()}"

    kind = rng.choice(
        ("int", "float", "double", "const int", "const float", "unsigned", "long long", "auto", "size_t", "bool")
    )
    new = rng.choice(
        (
            [f"{kind} {name()} = {term()};"],
            [f"{name()} = {term()};"],
            [f"{kind} {name()} = {term()};  // {scramble.soup(rng, fresh, known)}"],
            [f"{name()}[{term()}] += {name()}[{word()}] * {word()};"],
            [f"{name()}({word()}, {term()});"],
            [f"{word()} = {term()} < {word()} ? {term()} : {word()};"],
            [f"if ({term()} > {word()}) {word()} = {term()};"],
            [f"// {word()} {word()} {word()} {word()}"],
            [f"// {scramble.soup(rng, fresh, known)}"],
            [f"{scramble.soup(rng, fresh, known)};"],
            [f"{name()} {rng.choice(scramble.ASSIGNMENT)} {scramble.soup(rng, fresh, known)};"],
            [f"for (int {name()} = {word()}; {word()} >= 0; --{word()}) {{", f"    {word()} *= {term()};", "}"],
            [f"if ({term()} {rng.choice(scramble.LOGIC)} !{word()}) {word()} = {scramble.number(rng)};"],
            ["do {", f"    {word()} -= {term()};", f"}} while ({term()});"],
            [f"{kind} {name()} = {name()}({term()}), {name()} = {term()};"],
            [f"for (int {name()} = {word()}; {word()} < {term()}; ++{word()}) {{", f"    {word()} += {term()};", "}"],
            [f"while ({word()} < {word()} && {term()}) {{", f"    {word()} -= {word()};", "}"],
            [
                f"const {rng.choice(('float', 'int', 'double'))}* {name()} = {name()} "
                f"+ static_cast<size_t>({word()}) * {word()};"
            ],
            [f"{name()} = static_cast<{rng.choice(('float', 'int', 'double', 'uint8_t'))}>({term()});"],
            [f"{word()} += ({term()}) * {word()}({word()} - {word()});"],
        )
    )
    pad_a = lines_a[at][: len(lines_a[at]) - len(bare_a[at])]
    pad_b = lines_b[there][: len(lines_b[there]) - len(bare_b[there])]
    lines_a[at + 1 : at + 1] = [pad_a + line for line in new]
    lines_b[there + 1 : there + 1] = [pad_b + line for line in new]
    return "\n".join(lines_a), "\n".join(lines_b)
