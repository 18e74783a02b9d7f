"""Measure the model through llama.cpp, with the verifier as the only judge of what is right.

``python -m slm.evaluate SET... --out FILE``, each set adds its table to FILE. An answer that equals the generator's own
is right by construction; every other one goes to the judge.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regraph_db.records import Level, Verdict
from search import prompt
from search.answer import Outcome, parse, same_code
from slm import MODEL
from slm.corpus.idioms import canonical
from slm.corpus.real import DEV
from slm.corpus.sample import Sample
from slm.corpus.samples import Maker
from slm.corpus.trials import TRIALS, trials
from slm.judging import judged, task_for
from slm.tokenizer import Tokenizer
from verify import Judge, Task, list_tasks

SEED = 20_261_121
JUDGE_SECONDS = 240  # after which an answer counts as not judged (and so as not right)
BLIND = Path(__file__).resolve().parents[1] / "tests" / "slm" / "blind"
TRAJECTORIES = Path(__file__).resolve().parents[1] / "cudaeval" / "trajectories"


@dataclass(frozen=True)
class Case:
    """One question: the prompt, the code it holds, and the task that says what is right (none: must be refused)."""

    label: str
    prompt: str
    given: str
    task: Task | None
    wanted: str = ""  # the generator's own answer, "" where there is none
    idiom_shows: bool = False  # whether the example's idiom differs from the model's own one here


class Model:
    """llama.cpp with one thread; the GGUF's own chat template renders the prompt."""

    def __init__(self, path: Path) -> None:
        from llama_cpp import Llama

        self.llama = Llama(str(path), n_ctx=4096, n_threads=1, n_threads_batch=1, verbose=False)

    def answer(self, text: str, *, temperature: float, seed: int) -> tuple[str, bool]:
        """The answer, and whether it was cut."""
        try:
            result: Any = self.llama.create_chat_completion(
                messages=[{"role": "user", "content": text}],
                temperature=temperature,
                top_p=0.95,
                seed=seed,
                max_tokens=1500,
            )
        except ValueError:
            return "", True  # the prompt is longer than the context
        choice = result["choices"][0]
        return choice["message"]["content"] or "", choice["finish_reason"] == "length"


def outcome_of(found: str | Future[Verdict]) -> str:
    """right, the judge's word for what is wrong, or what kept an answer from the judge."""
    if isinstance(found, str):
        return found
    try:
        verdict = found.result(timeout=JUDGE_SECONDS)
    except TimeoutError:
        return "not judged"
    return "right" if verdict.passed else str(verdict.verdict)


class Bench:
    """Asks and parses; the judge works beside it and judges equal answers once."""

    def __init__(self, model: Model, judge: Judge, folder: Path) -> None:
        self.model, self.judge, self.folder = model, judge, folder
        self.known: dict[tuple[str, str], Future[Verdict]] = {}

    def ask(self, case: Case, *, temperature: float = 0.0, seed: int = 0) -> tuple[str | Future[Verdict], str]:
        """What became of one answer, or the judge's verdict to come; and its code."""
        text, cut = self.model.answer(case.prompt, temperature=temperature, seed=seed)
        parsed = parse(text, given=case.given, cut=cut)
        if parsed.outcome is Outcome.UNSUITABLE:
            return ("right" if case.task is None else "refused"), ""
        if case.task is None:
            return "accepted", parsed.code
        if parsed.outcome is not Outcome.ANSWERED:
            return str(parsed.outcome), parsed.code
        if case.wanted and same_code(parsed.code, case.wanted):
            return "right", parsed.code
        key = (case.task.hash, parsed.code)
        if key not in self.known:
            self.known[key] = self.judge.submit(case.task, judged(parsed.code), Level.FUNCTIONAL)
        return self.known[key], parsed.code

    def table(self, cases: Iterable[Case], *, samples: int = 0, temperature: float = 0.7) -> dict[str, Any]:
        """Greedy shares, and with ``samples`` pass@1 and pass@samples at ``temperature``."""
        cases = list(cases)
        answers = []
        for number, case in enumerate(cases):
            answers.append(
                [
                    self.ask(case),
                    *(self.ask(case, temperature=temperature, seed=1000 * number + k) for k in range(samples)),
                ]
            )
        outcomes: Counter[str] = Counter()
        by_label: dict[str, list[int]] = {}
        idiom, equal = [0, 0], 0
        sampled, solved, right_samples = 0, 0, 0
        failures = []
        for number, case in enumerate(cases):
            (found, code), *others = answers[number]
            outcome = outcome_of(found)
            sys.stderr.write(f"{number + 1}/{len(cases)} {case.label} {outcome}\n")
            outcomes[outcome] += 1
            cell = by_label.setdefault(case.label, [0, 0])
            cell[0] += outcome == "right"
            cell[1] += 1
            equal += bool(case.wanted) and same_code(code, case.wanted)
            if case.idiom_shows:
                idiom[0] += same_code(code, case.wanted)
                idiom[1] += 1
            if outcome != "right":
                failures.append(
                    {
                        "label": case.label,
                        "outcome": outcome,
                        "function": case.task.function if case.task else "",
                        "code": code,
                    }
                )
            good = sum(outcome_of(other) == "right" for other, _ in others)
            sampled += samples
            right_samples += good
            solved += good > 0
        n = max(1, len(cases))
        result: dict[str, Any] = {
            "cases": len(cases),
            "greedy_right": round(outcomes["right"] / n, 4),
            "outcomes": dict(outcomes),
            "equal": equal,  # the generator's own answer, idiom and all
            "by": {k: f"{a}/{b}" for k, (a, b) in sorted(by_label.items())},
            "failures": failures,
        }
        if idiom[1]:
            result["idiom_followed"] = f"{idiom[0]}/{idiom[1]}"
        if samples:
            result |= {"pass_1": round(right_samples / max(1, sampled), 4), f"pass_{samples}": round(solved / n, 4)}
        return result

    # -- cases
    def case(self, sample: Sample, number: str) -> Case:
        task = (
            task_for(
                self.folder / f"t{number}", sample.function, sample.arguments, dict(sample.dims), sample.sequential
            )
            if sample.after
            else None
        )
        return Case(f"{sample.family} {sample.technique}", sample.prompt, sample.before, task, sample.after)


def example_cases(bench: Bench, words: list[str], count: int) -> dict[str, list[Case]]:
    """The same steps with the right example, with none, and with one of another technique; every other step under a
    made-up name, so that only the example says what to do."""
    maker = Maker(random.Random(f"{SEED} example"), words, held_out=True)
    found: dict[str, list[Case]] = {"right": [], "none": [], "other": []}
    while len(found["right"]) < count:
        family, state, technique = maker.step()
        idiom = maker.idiom(technique, first=not state)
        vague = len(found["right"]) % 2 == 0
        sample = maker.asked(family, state, technique, "right", idiom, vague=vague)
        other = maker.asked(family, state, technique, "other", idiom)
        if sample is None or other is None or max(len(sample.prompt), len(other.prompt)) > 8000:
            continue
        own = family.apply(
            state,
            technique,
            {
                **canonical(technique),
                **({"parallel": canonical("parallel")} if not state and technique != "parallel" else {}),
            },
        )
        shows = own is not None and not same_code(family.render(own), sample.after)
        case = bench.case(sample, f"example{len(found['right'])}")
        case = replace(case, label="a made-up name" if vague else "the technique's name")
        name, _, rest = sample.prompt.partition("## Technique\n")[2].partition(": ")
        detail = rest.split("\n", 1)[0]
        found["right"].append(replace(case, idiom_shows=shows))
        found["none"].append(replace(case, prompt=prompt.rewrite(name, detail, sample.before), idiom_shows=False))
        wrong = other.prompt.split("## Example before\n```cuda\n", 1)[1]
        before, rest = wrong.split("\n```\n\n## Example after\n```cuda\n", 1)
        after = rest.split("\n```\n\n## Code", 1)[0]
        found["other"].append(
            replace(case, prompt=prompt.rewrite(name, detail, sample.before, before=before, after=after))
        )
    return found


TECHNIQUE_KEYS = {
    "thread parallelization": "parallel",
    "grid stride loop": "gridstride",
    "pointer restriction": "restrict",
    "block size tuning": "block",
    "vectorized memory access": "vec",
    "thread coarsening": "coarsen",
    "loop unrolling": "unroll",
    "fast math intrinsic": "fast",
    "read only data cache": "ldg",
    "shared memory tiling": "tile",
    "bank conflict avoidance": "pad",
    "warp shuffle reduction": "warp",
    "parallel reduction": "smem",
    "privatization": "private",
    "kernel fusion": "fuse",
    "warp per row": "warp",
    "launch bound": "bounds",
    "block per row": "smem",
}


def blind_cases(bench: Bench, words: list[str]) -> list[Case]:
    """The hand-written kernels, each with an example that the generator makes for the technique."""
    maker = Maker(random.Random(f"{SEED} blind"), words)
    cases = []
    for path in sorted(BLIND.glob("*.toml")):
        for k, entry in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["kernel"]):
            arguments = [blind_argument(text) for text in entry["arguments"]]
            function = entry["code"].split('extern "C" void ', 1)[1].split("(", 1)[0]
            task = task_for(bench.folder / f"{path.stem}{k}", function, arguments, entry["sizes"], entry["code"])
            technique = entry.get("technique", "thread parallelization")
            detail = entry.get("detail", "One thread per output element with a bounds check.")
            code = entry.get("before", entry["code"])
            key = TECHNIQUE_KEYS[technique]
            planar = code.count("for (") >= 2 and key == "parallel"
            before, after = example_for(maker, key, first="before" not in entry, planar=planar)
            text = prompt.rewrite(technique, detail, code, before=before, after=after)
            cases.append(Case(f"{path.stem} {key}", text, code, task))
    return cases


def blind_argument(text: str) -> tuple[str, str, str, str, str]:
    kind, ctype, name, *rest = text.split()
    extent = rest[0] if rest else ""
    values = rest[2] if len(rest) > 2 and rest[1] == "below" else "sorted" if "sorted" in rest[1:] else ""
    return kind, ctype.replace("long_long", "long long"), name, extent, values


def example_for(maker: Maker, technique: str, *, first: bool, planar: bool = False) -> tuple[str, str]:
    """Before and after of a technique, in the model's own idiom, short enough to leave room."""
    while True:
        family, state, _ = maker.step(technique, first=first)
        idiom = canonical(technique)
        if first and technique != "parallel":
            idiom["parallel"] = canonical("parallel")
        new = family.apply(state, technique, idiom)
        if new is None or (technique == "parallel" and family.planar_state(new).startswith("grid") != planar):
            continue
        before, after = family.render(state), family.render(new)
        if len(before) + len(after) < 2600:
            return before, after


def trajectory_steps() -> Iterator[tuple[Task, int, dict[str, Any], str]]:
    """(task, number, step, the code before it) of the shipped trajectories."""
    tasks = {t.name: t for t in list_tasks()}
    for path in sorted(TRAJECTORIES.glob("*.jsonl")):
        record = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
        if (task := tasks.get(record["task"])) is None:
            continue
        code = task.reference
        for k, step in enumerate(record["steps"]):
            yield task, k, step, code
            code = step["code"]


Shown = tuple[str, str, str, str, str]  # a step of a train task: task, method, detail, before, after


def shown_steps() -> list[Shown]:
    """The steps of the train tasks that training saw and that fit into a prompt as an example."""
    return [
        (task.name, step["method"], step["detail"], code, step["code"])
        for task, _, step, code in trajectory_steps()
        if task.split == "train" and task.name not in DEV and len(code) + len(step["code"]) <= 3600
    ]


def test_cases(split: str, steps: int) -> list[Case]:
    """The first ``steps`` steps of every trajectory of the split's tasks, each from the code before it; the example is
    the most alike step of another train task. ``dev`` are the train tasks that no training sees."""
    pool = shown_steps()
    cases = []
    for task, k, step, code in trajectory_steps():
        if k < steps and (task.name in DEV if split == "dev" else task.split == split):
            before, after = nearest(pool, step["method"], code, task.name)
            text = prompt.rewrite(step["method"], step["detail"], code, before=before, after=after)
            cases.append(Case(f"step {k + 1}", text, code, task))
    return cases


def edge_cases(first: int = 12, later: int = 3) -> list[Case]:
    """As a search asks: the code before every step of ``real.DEV`` with the steps of the train tasks on the most alike
    code, a method at most three times for a sequential function and once for a kernel."""
    pool = shown_steps()
    cases = []
    for task, k, _, code in (found for found in trajectory_steps() if found[0].name in DEV):
        count: Counter[str] = Counter()
        for _, method, detail, before, after in sorted(pool, key=lambda s: -likeness(s[3], code)):
            if ("__global__" in before) != ("__global__" in code) or count[method] == (1 if k else 3):
                continue
            count[method] += 1
            text = prompt.rewrite(method, detail, code, before=before, after=after)
            cases.append(Case("later" if k else "first", text, code, task))
            if count.total() == (later if k else first):
                break
    return cases


def likeness(one: str, other: str) -> float:
    """The share of words of three letters and more that both hold."""

    def words_of(text: str) -> set[str]:
        return {w for w in "".join(c.lower() if c.isalnum() else " " for c in text).split() if len(w) > 2}

    return len((a := words_of(one)) & (b := words_of(other))) / max(1, len(a | b))


def nearest(pool: list[Shown], method: str, code: str, name: str) -> tuple[str, str]:
    """The step of another task than ``name`` whose method and code share the most words with the question's."""

    def score(entry: Shown) -> float:
        same_stage = ("__global__" in entry[3]) == ("__global__" in code)
        return 2 * likeness(entry[1], method) + likeness(entry[3], code) + 0.5 * same_stage

    best = max((e for e in pool if e[0] != name), key=score, default=None)
    return (best[3], best[4]) if best is not None and score(best) > 0.3 else ("", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", choices=[*TRIALS, "blind", "example", "test", "train", "dev", "edges"])
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--samples", type=int, default=0, help="further answers for each case, at --temperature")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--seed", default=str(SEED), help="other draws of the sets that are drawn")
    parser.add_argument("--steps", type=int, default=2, help="steps of a trajectory in the sets test, train and dev")
    arguments = parser.parse_args()
    report = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else {}
    words = Tokenizer().words()
    with (
        tempfile.TemporaryDirectory(prefix="regraph-slm-") as folder,
        Judge(cache_folder=Path(folder) / "cache") as judge,
    ):
        bench = Bench(Model(arguments.model), judge, Path(folder))
        for name in arguments.sets:
            if name == "example":
                cases_of = example_cases(bench, words, arguments.count)
                report[name] = {which: bench.table(cases) for which, cases in cases_of.items()}
            else:
                if name in ("test", "train", "dev"):
                    cases = test_cases(name, arguments.steps)
                elif name == "edges":
                    cases = edge_cases()
                elif name == "blind":
                    cases = blind_cases(bench, words)
                else:
                    samples = trials(name, arguments.count, arguments.seed, words)
                    cases = [bench.case(s, f"{name}{k}") for k, s in enumerate(samples)]
                report[name] = bench.table(cases, samples=arguments.samples, temperature=arguments.temperature)
            arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            brief = report[name] if name == "example" else {name: report[name]}
            for label, table in brief.items():
                sys.stderr.write(
                    f"{name} {label}: {json.dumps({k: v for k, v in table.items() if k not in ('failures', 'by')})}\n"
                )


if __name__ == "__main__":
    main()
