"""Campaigns: which cells are run, what a sample holds, and going on after a kill."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cudaeval.campaign import Cell, cells, run, sample_of
from cudaeval.launch import name_of
from cudaeval.results import Results, Sample, Terms, read
from cudaeval.solver import BASE, copy_base, fingerprint
from regraph_db.errors import EnvironmentFault, InputError
from regraph_db.opening import open_store
from regraph_db.records import Attempt, Level, Step, Trajectory, Verdict, VerdictKind
from regraph_db.settings import load
from search.outcome import BestKernel, SearchOutcome
from verify import load_task

TERMS = Terms(budget=4, level=Level.GPU, seed=10, settings={"retime": 1})
PASSED = Verdict(verdict=VerdictKind.PASSED, level=Level.GPU, bound_share=0.5)


def attempt(number: int, speedup: float | None) -> Attempt:
    verdict = PASSED if speedup else Verdict(verdict=VerdictKind.WRONG_RESULT)
    return Attempt(id=f"a{number}", search="s", rollout="r", code=f"code {number}", verdict=verdict, speedup=speedup)


def outcome(cell: Cell, *speedups: float | None) -> SearchOutcome:
    attempts = tuple(attempt(number, speedup) for number, speedup in enumerate(speedups))
    best = max((a for a in attempts if a.speedup), key=lambda a: a.speedup or 0.0, default=None)
    kernel = BestKernel(best.id, best.code, PASSED, best.speedup, ("tiling",), (best,)) if best else None
    counts: dict[str, int] = {}
    for each in attempts:
        assert each.verdict is not None
        counts[str(each.verdict.verdict)] = counts.get(str(each.verdict.verdict), 0) + 1
    return SearchOutcome(
        search=cell.search,
        task=cell.task.name,
        strategy=cell.strategy,
        level=Level.GPU,
        model=cell.model,
        seed=cell.seed,
        budget=4,
        calls=len(attempts),
        best=kernel,
        verdicts=counts,
        seconds={"total": 1.0},
        attempts=attempts,
    )


def some_cells(samples: int = 2) -> list[Cell]:
    return list(cells([load_task("saxpy"), load_task("relu")], ["mcgs", "rag"], ["tiny.gguf"], samples, TERMS))


def test_every_cell_once_with_its_own_search_and_seed() -> None:
    found = some_cells()
    assert len({cell.key for cell in found}) == len({cell.search for cell in found}) == 8
    assert [cell.sample for cell in found] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert {cell.seed for cell in found} == {10, 11}
    assert [cell.search for cell in found] == [cell.search for cell in some_cells()]


def test_a_model_has_the_same_name_wherever_it_lies_and_another_one_another(tmp_path: Path) -> None:
    for folder, content in (("here", b"one"), ("there", b"one"), ("elsewhere", b"two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.gguf").write_bytes(content)
    here, there, elsewhere = (name_of(str(tmp_path / name / "m.gguf")) for name in ("here", "there", "elsewhere"))
    assert here == there != elsewhere and here.startswith("m.gguf@")
    assert name_of("langchain:ollama/qwen3") == "langchain:ollama/qwen3"
    with pytest.raises(EnvironmentFault, match="cannot be read"):
        name_of(str(tmp_path / "none.gguf"))


def test_other_terms_are_another_search() -> None:
    task = load_task("saxpy")
    more = TERMS.model_copy(update={"budget": 5})
    assert Cell(task, "mcgs", "m", 0, TERMS).search != Cell(task, "mcgs", "m", 0, more).search


def test_a_sample_is_the_searchs_own_answer_and_its_curve() -> None:
    cell = some_cells()[0]
    sample = sample_of(cell, outcome(cell, None, 3.0, 2.0, 5.0))
    assert (sample.solved, sample.speedup, sample.bound_share, sample.path) == (True, 5.0, 0.5, ("tiling",))
    assert sample.curve == ((2, 3.0), (4, 5.0))
    assert sample.verdicts == {"passed": 3, "wrong_result": 1}
    failed = sample_of(cell, outcome(cell, None, None))
    assert (failed.solved, failed.speedup, failed.curve) == (False, None, ())


def test_a_killed_campaign_goes_on_and_runs_nothing_twice(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    asked: list[tuple[str, str, str, int]] = []

    def solver(cells: Sequence[Cell]) -> Iterator[Sample]:
        for cell in cells:
            if len(asked) == 3:
                raise KeyboardInterrupt
            asked.append(cell.key)
            yield sample_of(cell, outcome(cell, 2.0))

    with pytest.raises(KeyboardInterrupt), Results(file, TERMS) as results:
        run(some_cells(), results, solver)
    with file.open("ab") as stream:  # what a kill in the middle of a write leaves behind
        stream.write(b'{"task": "sax')
    assert len(read(file)[1]) == 3

    def patient(cells: Sequence[Cell]) -> Iterator[Sample]:
        for cell in cells:
            asked.append(cell.key)
            yield sample_of(cell, outcome(cell, 2.0))

    with Results(file, TERMS) as results:
        assert run(some_cells(), results, patient) == 5
    assert sorted(asked) == sorted(cell.key for cell in some_cells())
    assert [sample.key for sample in read(file)[1]] == [cell.key for cell in some_cells()]
    with Results(file, TERMS) as results:
        assert run(some_cells(3), results, patient) == 4


def test_samples_on_other_terms_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    with Results(file, TERMS):
        pass
    with pytest.raises(InputError, match="budget 4, not 9; retime 1, not default"):
        Results(file, TERMS.model_copy(update={"budget": 9, "settings": {}}))


def test_one_process_writes_a_file_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    with Results(file, TERMS), pytest.raises(InputError, match="another `regraph eval run` writes it"):
        Results(file, TERMS)
    with Results(file, TERMS) as results:
        assert results.samples == []


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (['{"task": 1}'], ":1"),
        ([json.dumps({"campaign": TERMS.model_dump(mode="json")}), "{}"], ":2, field `task`"),
        ([json.dumps({"campaign": {"budget": 0, "level": "gpu"}})], ":1, field `budget`"),
        ([], "no campaign"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, lines: list[str], wanted: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read(file)
    assert wanted in str(caught.value)


def test_a_sample_survives_its_file(tmp_path: Path) -> None:
    cell = some_cells()[0]
    sample = sample_of(cell, outcome(cell, 1.5, None, 2.5))
    with Results(tmp_path / "runs.jsonl", TERMS) as results:
        results.add(sample)
    terms, samples = read(tmp_path / "runs.jsonl")
    assert terms == TERMS
    assert samples == [Sample.model_validate(sample.model_dump())]


def test_a_graph_that_has_learnt_more_is_another_campaign(tmp_path: Path) -> None:
    with open_store(load(), url=f"sqlite:///{tmp_path}/graph.db", create=True) as store:
        step = Step(method="tiling", code="int x;")
        store.merge_trajectories([Trajectory(task="saxpy", steps=(step,))])
        known = fingerprint(store, tmp_path)
        copy_base(store, tmp_path)
        store.merge_trajectories([Trajectory(task="relu", steps=(step,))])
        assert fingerprint(store, tmp_path) == known, "a campaign that goes on has the copy it began with"
        (tmp_path / BASE).unlink()
        assert fingerprint(store, tmp_path) != known
