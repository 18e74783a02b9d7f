"""The corpus: right by construction (the judge says so), in the product's own prompts, free of the test split."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slm
from regraph_db.records import Level
from search.answer import Outcome, parse
from slm.corpus import preamble, real, restyle, scramble
from slm.corpus.draws import FAMILIES, HELD_OUT
from slm.corpus.sample import Sample
from slm.corpus.samples import Maker
from slm.corpus.trials import TRIALS, trials
from slm.corpus.unseen import UNSEEN
from slm.judging import task_for
from verify import Judge, list_tasks

WORDS = ("row", "scale", "index", "max", "idx", "len", "value", "norm")
ROOT = Path(slm.__file__).resolve().parents[1]
GRAM = real.GRAM


def samples(seed: int, count: int) -> list[Sample]:
    maker = Maker(random.Random(seed), WORDS)
    return [maker.draw() for _ in range(count)]


def grams(text: str) -> Iterator[tuple[str, ...]]:
    tokens = re.findall(r"\w+|[^\w\s]", text)
    for k in range(len(tokens) - GRAM + 1):
        yield tuple(tokens[k : k + GRAM])


def test_the_same_seed_gives_the_same_samples() -> None:
    assert samples(3, 40) == samples(3, 40)
    assert samples(3, 40) != samples(4, 40)


def test_answers_are_read_as_the_product_reads_them() -> None:
    for sample in samples(5, 300):
        parsed = parse(sample.answer, given=sample.before)
        if sample.form == "refuse":
            assert parsed.outcome is Outcome.UNSUITABLE
        else:
            assert parsed.outcome is Outcome.ANSWERED, sample.answer
            assert parsed.code.strip() == sample.after.strip()


def test_every_form_of_prompt_and_every_technique_occurs() -> None:
    drawn = samples(6, 1500)
    assert {s.form for s in drawn} == {"rewrite", "standard", "cot", "fsr", "refuse", "life"}
    learnt = {s.technique for s in drawn if s.form == "rewrite"}
    wanted = "parallel gridstride vec coarsen unroll smem warp tile pad regtile private fuse restrict ldg fast fma"
    assert learnt >= set(wanted.split())
    assert any("## Last result" in s.prompt for s in drawn)


def test_every_family_is_learnt_from() -> None:
    assert {s.family for s in samples(12, 1500)} >= {family.name for family in FAMILIES}


def test_held_out_pairs_are_never_learnt() -> None:
    """Neither done nor refused: whoever only sees a pair refused learns to refuse it."""
    for sample in samples(7, 1500):
        assert sample.form not in ("rewrite", "refuse") or (sample.family, sample.technique) not in HELD_OUT


def test_the_example_is_of_another_kernel() -> None:
    for sample in samples(8, 400):
        if sample.form == "rewrite" and "## Example before" in sample.prompt:
            example = sample.prompt.split("## Example before", 1)[1].split("## Code", 1)[0]
            assert f" {sample.function}(" not in example


def test_the_test_split_is_not_in_the_corpus() -> None:
    """No 60 words in a row of a test task's reference or trajectory occur in a large sample of the corpus."""
    test = {task.name: task for task in list_tasks() if task.split == "test"}
    assert len(test) >= 10
    forbidden: dict[tuple[str, ...], str] = {}
    for name, task in test.items():
        for gram in grams(task.reference):
            forbidden[gram] = name
        trajectory = ROOT / "cudaeval" / "trajectories" / f"{name}.jsonl"
        if trajectory.is_file():
            for line in trajectory.read_text(encoding="utf-8").splitlines():
                for step in json.loads(line)["steps"]:
                    for gram in grams(step["code"]):
                        forbidden[gram] = name
    assert forbidden
    for sample in samples(9, 3000):
        for gram in grams(sample.prompt + sample.answer):
            assert gram not in forbidden, (forbidden[gram], sample.prompt)


def test_steps_from_life_are_of_the_train_split() -> None:
    split = {task.name: task.split for task in list_tasks()}
    assert len(real.steps()) > 50
    for task, *_ in real.steps():
        assert split[task] == "train"
        assert task not in real.DEV
    for task in real.DEV:
        assert split[task] == "train"


def test_the_manner_of_a_step_from_life_is_followed() -> None:
    """The answer to a synthetic question has the block size of the real example that stands before it."""
    maker = Maker(random.Random(13), WORDS)
    found = [sample for sample in (maker.as_in_life() for _ in range(120)) if sample]
    assert len(found) > 30
    for sample in found:
        example = sample.prompt.split("## Example after", 1)[1].split("## Code", 1)[0]
        block = re.search(r"dim3 block\((\d+, ?\d+)\)", example) or re.search(r"<<<.*, (\d+)>>>", example)
        assert block is not None
        assert block[1].replace(" ", "") in sample.after.replace(" ", "")  # spaces are a matter of layout


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_what_stands_above_a_function_is_the_same_before_and_after(seed: int) -> None:
    """But for the words that put a function or a table on the device; and nothing else of the codes changes."""
    before = "#include <cmath>\n\nextern void f() {\n}\n"
    after = "#include <cuda_runtime.h>\n\n__global__ void g() {\n}\n"
    new_before, new_after = preamble.added(random.Random(seed), before, after, WORDS)
    above = []
    for new, old in ((new_before, before), (new_after, after)):
        head, rest = old.split("\n\n")
        assert new.startswith(head + "\n\n")
        assert new.endswith("\n\n" + rest)
        middle = new[len(head) : -len(rest)]
        assert len(middle.strip()) > 1
        places = (
            r"__constant__|static const(?:expr)?|const(?:expr)?|__device__ __forceinline__|static inline|static|inline"
        )
        above.append(re.sub(rf"^(?:{places}) ", "", middle, flags=re.MULTILINE))
    assert above[0] == above[1]


def test_only_one_module_reads_the_benchmark() -> None:
    for path in (ROOT / "slm" / "corpus").glob("*.py"):
        if path.name != "real.py":
            assert "cudaeval" not in path.read_text(encoding="utf-8")


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 1.0))
@settings(max_examples=40, deadline=None)
def test_renaming_is_the_same_in_both_codes(seed: int, share: float) -> None:
    """Undoing the new names in the after code undoes them in the before code too: nothing else has changed."""
    rng = random.Random(seed)
    maker = Maker(random.Random(seed), WORDS)
    sample = maker.pair()
    before, after = real.renamed(rng, sample.before, sample.after, WORDS, share)
    words_new = re.findall(r"\w+", before + after)
    pairs = dict(zip(words_new, re.findall(r"\w+", sample.before + sample.after), strict=True))
    back = {new: old for new, old in pairs.items() if new != old}
    for text, old in ((before, sample.before), (after, sample.after)):
        assert re.sub(r"[A-Za-z_]\w*", lambda m: back.get(m[0], m[0]), text) == old


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_another_layout_says_the_same(seed: int) -> None:
    """Casts, increments, stars and spaces are written otherwise; names, numbers and operators stay in their order."""
    rng = random.Random(seed)
    _, _, _, *texts = rng.choice(real.steps())

    def said(text: str) -> list[str]:
        words = re.findall(r"\w+|[^\w\s]", text)
        return [w for w in words if w not in ("static_cast", "const", "<", ">", "(", ")", "+")]

    def spelled(text: str) -> str:
        return " ".join(said(re.sub(r"; (?:\+\+(\w+)|(\w+)\+\+)\)", r"; \1\2)", text)))

    for new, old in zip(restyle.restyled(rng, *texts), texts, strict=True):
        assert spelled(new) == spelled(old)


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=40, deadline=None)
def test_scrambling_changes_only_lines_that_both_codes_hold(seed: int, operators: bool) -> None:
    """As many lines as before; each changed one stood in both codes and stands in both again, changed alike."""
    sample = Maker(random.Random(seed), WORDS).pair()
    before, after = scramble.scrambled(
        random.Random(seed), sample.before, sample.after, WORDS, operators=operators, most=9
    )
    changed = []
    for new_text, old_text in ((before, sample.before), (after, sample.after)):
        new_lines, old_lines = new_text.split("\n"), old_text.split("\n")
        assert len(new_lines) == len(old_lines)
        changed.append({(o.strip(), n.strip()) for o, n in zip(old_lines, new_lines, strict=True) if o != n})
        for old, new in zip(old_lines, new_lines, strict=True):
            assert len(old) - len(old.lstrip()) == len(new) - len(new.lstrip())
    assert changed[0] == changed[1]


@pytest.mark.parametrize("name", TRIALS)
def test_trials_are_what_they_are_called(name: str) -> None:
    found = trials(name, 12, "a test", WORDS)
    assert found == trials(name, 12, "a test", WORDS)
    for sample in found:
        assert ((sample.family, sample.technique) in HELD_OUT) == (name == "pairs")
        assert (sample.family in {family.name for family in UNSEEN}) == (name == "families")
        assert (sample.after == "") == (name == "refuse")


@pytest.mark.nvcc
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_seeded_sample_is_right_by_the_judge(tmp_path: Path) -> None:
    """Each rewritten code gives the sequential code's results, without races, at the functional level."""
    maker = Maker(random.Random(11), WORDS, held_out=True)
    chosen: list[Sample] = []
    while len(chosen) < 24:
        sample = maker.draw()
        if sample.after and not sample.marred:
            chosen.append(sample)
    with Judge(cache_folder=tmp_path / "cache") as judge:
        for k, sample in enumerate(chosen):
            task = task_for(tmp_path / f"t{k}", sample.function, sample.arguments, dict(sample.dims), sample.sequential)
            verdict = judge.judge(task, sample.after, Level.FUNCTIONAL)
            assert verdict.passed, (sample.family, sample.technique, verdict.reason, verdict.log, sample.after)
